"""SQL that every database of ours takes, and the values around it."""
