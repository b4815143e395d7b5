"""Routes for tasks: their blobs, results and channels."""
