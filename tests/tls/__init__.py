"""TLS: keys, certificates and pins."""
