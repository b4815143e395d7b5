"""The keeper's edges: processes, cgroups, records, sockets, the loop."""
