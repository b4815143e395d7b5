"""Tests of the keeper: real processes, and a core with made-up ones."""
