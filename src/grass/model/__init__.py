"""Values that every other package speaks in: amounts, requests, jobs, states."""
