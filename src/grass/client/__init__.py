"""The client: what the command line and Python programs call a daemon with.

Everything here is on the path of `grass enqueue`, whose cost is mostly that of its
imports: the standard library's `json`, `socket`, `typing` and `re` are left out.
"""
