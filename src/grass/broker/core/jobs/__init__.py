"""What users do to jobs and queues."""
