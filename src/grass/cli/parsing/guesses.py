"""The command that is meant by a word that is none.

A suggestion is typed without much thought, so it never leads to a command that ends or
forgets something, unless the word says so.
"""

from collections.abc import Mapping
from difflib import get_close_matches

GUESSES = {
    "add": "enqueue",
    "submit": "enqueue",
    "sbatch": "enqueue",
    "exec": "run",
    "srun": "run",
    "watch": "show --watch",
    "list": "show",
    "jobs": "show",
    "queue": "show",
    "queues": "show --queues",
    "squeue": "show",
    "info": "show",
    "log": "logs",
    "cat": "logs",
    "output": "logs",
    "follow": "logs -f",
    "tail": "logs -f",
    "why": "explain",
    "history": "events",
    "kill": "cancel",
    "abort": "cancel",
    "scancel": "cancel",
    "retry": "rerun",
    "requeue": "rerun",
    "restart-job": "rerun",
    "rm": "remove",
    "delete": "remove",
    "clean": "prune",
    "clear": "prune",
    "unhold": "release",
    "unpause": "resume",
    "nodes": "workers",
    "settings": "config",
    "connect": "join",
}
"""What people type who come from elsewhere, and what does that here."""

_LASTING = frozenset(
    {"cancel", "delete-queue", "leave", "prune", "remove", "restart", "stop"}
)
"""Commands that end or forget something: not to be typed on a vague suggestion."""


def suggestion(name: str, commands: Mapping[str, str]) -> str | None:
    """Return the command that a word is meant to be; `commands` has their words.

    One that ends or forgets something is told only for a word that is known to mean
    it, or is at most one letter away.
    """
    if name in GUESSES:
        return GUESSES[name]
    for near in get_close_matches(name, commands, len(commands)):
        if near not in _LASTING or _one_letter_apart(name, near):
            return commands[near]
    return None


def _one_letter_apart(one: str, other: str) -> bool:
    """Tell whether a letter is missing, wrong or exchanged with the next."""
    if len(one) > len(other):
        one, other = other, one
    at = next((i for i, letter in enumerate(one) if letter != other[i]), len(one))
    if len(one) < len(other):
        return one[at:] == other[at + 1 :]
    is_exchanged = one[at : at + 2] == other[at : at + 2][::-1]
    return one[at + 1 :] == other[at + 1 :] or (
        is_exchanged and one[at + 2 :] == other[at + 2 :]
    )
