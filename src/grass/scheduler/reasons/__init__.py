"""Why a job waits, and why it can never start."""
