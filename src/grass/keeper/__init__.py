"""The small process that is the parent of every job and outlives the daemon.

It uses the standard library only and hardly anything else of grass, so that it stays
small and an upgrade of the rest cannot break it. `protocol` has its messages and
`codec` their bytes, `core` decides, `system` acts, `launch` starts a keeper.
"""
