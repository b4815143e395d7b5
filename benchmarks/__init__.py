"""Benchmarks: Grass beside its peers, in the same run, as ratios.

`python -m benchmarks` runs every measurement in rounds, each contender once a round,
prints a table with bars and goals, and writes it to `benchmarks/results/`. Nothing here
is a test: figures move with the machine, ratios within one run much less.
"""
