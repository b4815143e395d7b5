"""The command line's verbs for Python programs: enqueue jobs, and steer them."""
