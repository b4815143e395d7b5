"""The I/O around the worker's core: the agent, the keeper's socket, output files."""
