"""Idempotency keys: by which a broker knows a call that is sent again.

A key begins with the second in which it was made, in hexadecimal, and a dash. Memory
keeps what the last minutes' calls were answered with; only for a key that is older than
that, or that does not say, the store has to be asked. The stamp is the caller's own: a
clock that is wrong costs a look into the store, never a second job.
"""

FRESH_S = 240
AHEAD_S = 5
"""How far a caller's clock may be ahead before its stamps count for nothing."""


def is_fresh(key: str, now_s: float) -> bool:
    """Tell whether a key was made so lately that memory knows all about it."""
    stamp, dash, _ = key.partition("-")
    try:
        made_s = int(stamp, 16) if dash else 0
    except ValueError:
        return False
    return now_s - FRESH_S <= made_s <= now_s + AHEAD_S
