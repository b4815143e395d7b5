"""From a placement to its outcome."""
