"""Shapes that wait for units, and which of them a release of units lets start."""
