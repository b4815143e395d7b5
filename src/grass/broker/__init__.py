"""The one owner of queues and jobs."""
