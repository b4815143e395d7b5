"""The keeper's decisions: events in, effects out; no clock, no I/O."""
