"""Guests: Python code that takes units from the scheduler in its own process."""
