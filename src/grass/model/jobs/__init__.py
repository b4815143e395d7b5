"""A job: what users say of it, and its states."""
