"""The documentation, checked against the program."""
