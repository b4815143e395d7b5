"""Pictures of the dashboard: a lab with its jobs, its past hours, and a camera."""
