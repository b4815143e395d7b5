"""One module per group of routes, and what they read from a request."""
