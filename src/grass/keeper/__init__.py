"""The small process that is the parent of every job and outlives the daemon.

It uses the standard library only and imports nothing else of grass, so that it stays
small and an upgrade of the rest cannot break it. `core` decides, `process` acts,
`launch` starts one; the other modules are the edges `process` is made of.
"""
