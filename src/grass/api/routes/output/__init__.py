"""Routes for what a job writes and reads."""
