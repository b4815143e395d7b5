"""The client: what the command line and Python programs use to speak to a daemon.

Everything here is on the path of `grass enqueue`, whose cost is mostly that of its
imports: the standard library's `json`, `socket`, `typing` and `re` are left out.
"""
