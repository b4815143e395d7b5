"""The composition root: the process that hosts a broker, a worker and the API."""
