"""Grass: a job scheduler for people with a few GPUs and no cluster team."""

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Look the version up only when somebody asks: `import grass` stays light."""
    if name == "__version__":
        from importlib.metadata import version

        return version("grass-scheduler")
    raise AttributeError(f"module `grass` has no attribute `{name}`")
