"""Child processes that run plain functions: warm, pinned, one task at a time."""
