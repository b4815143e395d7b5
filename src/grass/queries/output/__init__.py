"""What jobs write: where it is, its lines by number, searched and followed."""
