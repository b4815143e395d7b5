"""Which task of a program starts, on which units. No clock, no I/O."""
