"""The machines that run jobs, and what they have."""
