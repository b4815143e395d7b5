"""The broker's decisions: calls in, changes and effects out; no clock, no I/O."""
