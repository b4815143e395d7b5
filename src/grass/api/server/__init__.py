"""The listeners: the Unix socket, TCP with TLS, and the workers' links."""
