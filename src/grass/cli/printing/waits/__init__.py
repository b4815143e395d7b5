"""What is printed while a command waits for jobs."""
