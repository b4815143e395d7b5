"""The database of a home: opened, missed, moved, checked and restored."""
