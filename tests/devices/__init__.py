"""Tests of what a machine has."""
