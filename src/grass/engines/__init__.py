"""Engines: somebody else's schedulers, asked to start workers."""
