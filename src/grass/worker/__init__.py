"""The agent that runs attempts on one machine."""
