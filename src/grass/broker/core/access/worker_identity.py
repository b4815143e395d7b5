"""Which machine may use a worker's id: only the one that had it before.

Ids are no secret, and a code says only that its holder may join. So a worker that is
known, or whose token was used, is given a token only if the last one is shown. Where
that was revoked or has expired, its hash is kept as the proof, under a name that is no
token's; it counts for nothing else. It goes when the next token is used, or the worker
is forgotten, which frees the id. The broker's own worker is never given away.

A home that was copied has the id and the token of the first, but is another instance.
It is refused while the first is connected or has attempts, whatever it reports: they
may still run, and another attempt must not start beside them.
"""

from grass.broker.core.calls import Enrol
from grass.broker.core.state import State
from grass.errors import Refused
from grass.model.access import HASH_BYTES, Token
from grass.model.worker import Worker

SECOND_INSTANCE = (
    "another machine uses this worker's identity",
    "remove worker-id from the copy's state directory and join again",
)
_PROOF = "former."
"""Before a worker's id. No name of a token has a dot."""


def check(state: State, worker: str, bound: Token | None, call: Enrol) -> None:
    """Refuse a machine that does not prove that it had this worker before.

    The unused token of a worker that never connected may be one whose reply was lost:
    its machine gets another. There is nothing yet that another machine could take.
    """
    known = state.workers.get(worker)
    if known is None and (bound is None or bound.used_at is None):
        return
    if known is not None and known.address is None:
        raise _own(known)
    if known is not None:
        check_instance(state, known, call.instance)
    shown, proofs = call.shown, _proofs(state, worker, bound)
    if shown is None or not any(one.fits(shown) for one in proofs):
        raise _unproved(known, bound)


def check_instance(state: State, worker: Worker, instance: str) -> None:
    """Refuse a second instance of a worker while the first may be running jobs."""
    if not is_second(worker, instance):
        return
    if worker.connected:
        raise Refused(*SECOND_INSTANCE)
    if state.attempts_on(worker.id):
        raise Refused(
            f"another machine uses the identity of worker `{worker.name}`, and jobs may"
            " still run there",
            "remove worker-id from the copy's state directory and join again; if the"
            f" first is gone for good, `grass workers forget {worker.name}` at the"
            " broker, then join again",
        )


def is_second(worker: Worker, instance: str) -> bool:
    """Tell whether an instance is known to be another than the worker's present one."""
    return worker.instance not in ("", instance)


def is_proof(name: str) -> bool:
    """Tell whether this is no token, but what is left of one."""
    return name.startswith(_PROOF)


def proof_name(worker: str) -> str:
    """Name what is left of a worker's last token."""
    return _PROOF + worker


def proof_of(state: State, token: Token) -> Token | None:
    """Return what is kept of a revoked token, if it is that of a known worker."""
    if token.worker is None or token.worker not in state.workers:
        return None
    name, hashes = proof_name(token.worker), token.hash
    earlier = state.tokens.get(name)
    if earlier is not None:
        # The token was never used: maybe the machine did not get it.
        hashes = hashes[:HASH_BYTES] + earlier.hash[:HASH_BYTES]
    return Token(name, token.role, hashes, state.now_us, "", expires_at=0)


def _proofs(state: State, worker: str, bound: Token | None) -> list[Token]:
    """Return the tokens that only the worker's machine can show: the last used one."""
    if bound is not None and bound.used_at is not None:
        return [bound]
    kept = state.tokens.get(proof_name(worker))
    expired = [one for one in state.tokens.values() if one.worker == worker]
    return [*expired, *([] if kept is None else [kept])]


def _own(worker: Worker) -> Refused:
    return Refused(
        f"worker `{worker.name}` is the broker's own",
        "remove worker-id from this machine's state directory and join again, or"
        f" `grass workers forget {worker.name}` first, at the broker",
    )


def _unproved(known: Worker | None, bound: Token | None) -> Refused:
    if known is not None:
        return Refused(
            f"worker `{known.name}` is known, and this machine does not show its token",
            f"`grass workers forget {known.name}` first, at the broker",
        )
    name = "" if bound is None else bound.name
    return Refused(
        "this worker has a token already",
        f"`grass token revoke {name}` first, at the broker",
    )
