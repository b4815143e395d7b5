"""The dashboard's files: pages, scripts and styles, served as they are."""

import os

STATIC = os.path.join(os.path.dirname(__file__), "static")
"""The folder of the files."""
