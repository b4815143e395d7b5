"""Who a worker is, and which tokens are valid."""
