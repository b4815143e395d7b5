"""The tests of Grass."""
