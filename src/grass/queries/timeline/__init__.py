"""The timeline: which attempts held which units, and which jobs are expected to."""
