"""Tests on a real GPU: `make gpu-test`."""
