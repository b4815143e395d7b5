"""What changes, sent to all who follow it: read once and encoded once for all."""
