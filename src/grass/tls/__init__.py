"""TLS between machines: who a broker is, by its key, and how that is checked."""
