"""A real daemon, used the way people use it."""
