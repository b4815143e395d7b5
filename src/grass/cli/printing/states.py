"""The states of jobs, in the order in which they go through them.

As the words that a daemon tells: to import the lifecycle itself would cost every
command time.
"""

UNSTARTED = ("held", "waiting", "queued")
UNFINISHED = (*UNSTARTED, "running")
ENDED = ("succeeded", "failed", "cancelled", "lost")
