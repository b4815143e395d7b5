"""What is learned of job types, and what follows for their next attempts."""
