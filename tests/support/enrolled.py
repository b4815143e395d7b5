"""Workers of other machines, as if each had joined."""

from grass.broker.core.state import State
from grass.model.access import Token, hash_of


def bind_token(state: State, worker: str) -> Token:
    """Have a worker own a token, without a word in the journal."""
    name = f"{worker}-token"
    token = Token(name, "worker", hash_of(name), state.now_us, "me", worker=worker)
    state.tokens[name] = state.batch.changes.tokens[name] = token
    return token
