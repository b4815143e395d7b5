"""A real daemon and keeper, killed at bad moments."""
