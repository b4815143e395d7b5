"""The command line: one module per command; each reads words, calls the client, prints.

Only the called command's module is imported, and nothing that it does not need: most of
what a command costs is Python starting and importing.
"""
