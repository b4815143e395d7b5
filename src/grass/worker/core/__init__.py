"""The worker's decisions: messages in, effects out; no clock, no I/O."""
