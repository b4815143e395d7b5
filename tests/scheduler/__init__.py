"""Tests of the decisions: pure, no processes, every step checked."""
