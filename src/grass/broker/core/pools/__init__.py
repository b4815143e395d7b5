"""Pools: how many pilots to ask an engine for, and when they leave."""
