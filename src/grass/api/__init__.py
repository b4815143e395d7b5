"""The HTTP interface: translates, decides nothing."""
