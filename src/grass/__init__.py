"""Grass: a job scheduler for people with a few GPUs and no cluster team."""

__version__ = "0.1.0"
