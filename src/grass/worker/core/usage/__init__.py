"""What attempts use of a machine, from looks at it."""
