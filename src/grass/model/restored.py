"""The mark of a database that came back from a backup."""

RESTORED_LAST_JOB = "restored_last_job"
"""The last job of the backup, until all workers have reported since; 0 or missing: they
have, or it was never restored."""
