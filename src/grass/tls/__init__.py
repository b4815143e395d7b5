"""TLS between machines: the broker's key, and how clients check it."""
