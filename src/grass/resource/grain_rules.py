"""Resources that Grain has besides cores, memory and time: rules, not amounts.

They are asked in the program that made them, as classes of the user's own are.
"""

from __future__ import annotations

from grass.resource.parts import ZERO, Resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class Token(Resource):
    """A mark: tasks that ask for `Token("A")` run where there is the same one."""

    def __init__(self, token: object) -> None:
        super().__init__()
        self.token = token

    def _repr(self) -> str:
        return f"Token({self.token!r})"

    def _request(self, res: Token) -> bool:
        return bool(self.token == res.token)

    def _alloc(self, res: Token) -> Token:
        if not self._request(res):
            raise ValueError(f"{self!r} does not match {res!r}")
        return res


class Capacity(Resource):
    """So many tasks at a time, of those that ask for `ONE_INSTANCE`."""

    def __init__(self, V: int) -> None:  # noqa: N803 -- Grain's name
        super().__init__()
        self.V = self.v = V

    def _repr(self) -> str:
        return "ONE_INSTANCE" if self.v == _ONE else f"Capacity({self.v})"

    def _request(self, res: Capacity) -> bool:
        return self.v > 0

    def _alloc(self, res: Capacity) -> Capacity:
        if not self._request(res):
            raise ValueError(f"{self!r} has no capacity left")
        self.v -= 1
        return res

    def _dealloc(self, res: Capacity) -> None:
        self.v += 1


_ONE = -1
ONE_INSTANCE = Capacity(_ONE)
"""What a task asks for of a `Capacity`."""


class Reject(Resource):
    """Affords nothing, not even `ZERO`; what is given back goes to what it wraps."""

    def __init__(self, wrap: Resource = ZERO) -> None:
        super().__init__()
        self._parts = {}
        self._wrapped = wrap

    def __repr__(self) -> str:
        """Return how it is written."""
        return f"Reject({self._wrapped!r})"

    def __and__(self, other: Resource) -> Resource:
        """Return this: nothing can be added to it."""
        return self

    def request(self, res: Resource) -> bool:
        """Tell that nothing is affordable."""
        return False

    def alloc(self, res: Resource) -> NoReturn:
        """Refuse."""
        raise ValueError(f"{self!r} cannot allocate {res!r}: it gives nothing")

    def dealloc(self, res: Resource) -> None:
        """Take back what was taken before."""
        self._wrapped.dealloc(res)

    def eject(self) -> Resource:
        """Return what it wraps."""
        return self._wrapped


REJECT = Reject()
"""What affords nothing."""
