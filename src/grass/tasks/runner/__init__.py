"""The program of a runner: a warm Python that runs tasks for the keeper."""
