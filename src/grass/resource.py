"""Resources as values: what a task asks for, and what it was given.

`Cores(3) & Memory(2)` is three cores and two GiB. A resource has parts, one of each
kind. Kinds that Grass counts (`Cores`, `Memory`, `Gpu`, `Vram`, `Kind`) are placed by
the scheduler. A class of the user's own, with `_request`, `_alloc` and `_dealloc`, is
asked in the program that made it. `WTime` is time, which is not counted at all.

Comparison asks what is affordable: `Node(N=16, M=28) >= Cores(3)`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from math import inf, isinf

from grass.model.amount_text import WHOLE, amount_text, decimal_text
from grass.model.amounts import decimal_number, request_amount
from grass.model.resources import Allocation, Capacity, Request, Units, unit_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Amount = float | str

_MISSING = object()
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60
_TEN_YEARS_S = 10 * 365 * _DAY_S


class Resource:
    """Something that tasks ask for: a subclass is one part, `&` combines parts."""

    def __init__(self) -> None:
        self._parts: dict[str, Resource] = {self._part_name(): self}

    def _part_name(self) -> str:
        return type(self).__name__

    def _request(self, res: Any) -> bool:  # noqa: ANN401 -- of the same class
        """Tell whether `_alloc(res)` is possible."""
        raise NotImplementedError(f"{type(self).__name__} has no `_request`")

    def _alloc(self, res: Any) -> Any:  # noqa: ANN401
        """Take what is asked for, and return it."""
        raise NotImplementedError(f"{type(self).__name__} has no `_alloc`")

    def _dealloc(self, res: Any) -> None:  # noqa: ANN401
        """Take back what `_alloc` has returned."""

    def _repr(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def parts(self) -> Mapping[str, Resource]:
        """The parts, by the name of their kind."""
        return self._parts

    def __and__(self, other: Resource) -> Resource:
        """Combine resources of different kinds."""
        for name in self._parts:
            if name in other._parts:
                raise ValueError(
                    f"both sides of `{self!r} & {other!r}` have {name}: ask for the sum"
                )
        return combined({**self._parts, **other._parts})

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Return what a part has: `(Cores(2) & Memory(1)).N`."""
        if not name.startswith("_"):
            for part in self.__dict__.get("_parts", {}).values():
                value = _MISSING if part is self else getattr(part, name, _MISSING)
                if value is not _MISSING:
                    return value
            raise AttributeError(f"{self!r} has no attribute `{name}`")
        raise AttributeError(name)

    def __repr__(self) -> str:
        """Return it as it is written."""
        return " & ".join(part._repr() for part in self._parts.values()) or "ZERO"

    def __ge__(self, other: Resource) -> bool:
        """Tell whether the other is affordable."""
        return self.request(other)

    def __le__(self, other: Resource) -> bool:
        """Tell whether the other can afford this."""
        return other.request(self)

    def __gt__(self, other: Resource) -> bool:
        """Tell whether the other cannot afford this."""
        return not other.request(self)

    def __lt__(self, other: Resource) -> bool:
        """Tell whether the other is not affordable."""
        return not self.request(other)

    def __eq__(self, other: object) -> bool:
        """Tell whether each can afford the other."""
        if not isinstance(other, Resource):
            return NotImplemented
        return self.request(other) and other.request(self)

    __hash__ = object.__hash__

    def request(self, res: Resource) -> bool:
        """Tell whether this can afford another."""
        return all(
            name in self._parts and self._parts[name]._request(part)
            for name, part in res._parts.items()
        )

    def alloc(self, res: Resource) -> Resource:
        """Take what another asks for: all of its parts, or none."""
        self._check_has_parts("alloc", res)
        taken: dict[str, Resource] = {}
        try:
            for name, part in res._parts.items():
                taken[name] = self._parts[name]._alloc(part)
        except BaseException:
            self.dealloc(combined(taken))
            raise
        return combined(taken)

    def dealloc(self, res: Resource) -> None:
        """Take back what `alloc` has returned."""
        self._check_has_parts("dealloc", res)
        for name, part in res._parts.items():
            self._parts[name]._dealloc(part)

    def _check_has_parts(self, verb: str, res: Resource) -> None:
        if not res._parts.keys() <= self._parts.keys():
            text = f"{self!r} does not have the same shape as {res!r}"
            raise ValueError(f"Cannot {verb}: {text}")


def combined(parts: Mapping[str, Resource]) -> Resource:
    """Return a resource with these parts."""
    whole = Resource.__new__(Resource)
    whole._parts = dict(parts)
    return whole


ZERO = combined({})
"""Nothing: a task that asks for it waits for nobody."""


class Kind(Resource):
    """An amount of a kind that Grass counts: `Kind("printer", 1)`."""

    def __init__(self, kind: str, amount: Amount, units: Iterable[str] = ()) -> None:
        self.kind = kind
        self.amount = self._free = request_amount(amount, kind)
        """What there is, in ten-thousandths of a unit; and what is left of it."""
        self.units = list(units)
        """The names of the units, where a task was given them."""
        super().__init__()

    def capacity(self) -> Units:
        """Return the units of a machine that has this."""
        count, rest = divmod(self.amount, WHOLE)
        sizes = [WHOLE] * count + ([rest] if rest else [])
        return {str(number): size for number, size in enumerate(sizes)}

    def _part_name(self) -> str:
        return self.kind

    def _written(self) -> str:
        return amount_text(self._free, self.kind)

    def _repr(self) -> str:
        return f"Kind({self.kind!r}, {self._written()})"

    def _request(self, res: Kind) -> bool:
        return self._free >= res._free

    def _alloc(self, res: Kind) -> Resource:
        if not self._request(res):
            raise ValueError(f"{self!r} cannot allocate {res!r}")
        self._free -= res._free
        return part_of(self.kind, decimal_number(res._free), self.units)

    def _dealloc(self, res: Kind) -> None:
        self._free += res._free


class Gpu(Kind):
    """GPUs, or a share of one with that share of its memory: `Gpu(0.5)`."""

    def __init__(self, amount: Amount, units: Iterable[str] = ()) -> None:
        super().__init__("gpu", amount, units)

    def _repr(self) -> str:
        return f"Gpu({self._written()})"


class _Bytes(Kind):
    """Memory, of which a machine has one unit."""

    @property
    def m(self) -> float:
        """What is left of it."""
        return decimal_number(self._free)

    @property
    def M(self) -> float:  # noqa: N802 -- Grain's name
        """What there is of it."""
        return decimal_number(self.amount)

    def capacity(self) -> Units:
        return {"0": self.amount} if self.amount else {}

    def _repr(self) -> str:
        return f"{type(self).__name__}({decimal_text(self._free)})"


class Memory(_Bytes):
    """Memory of the machine: `Memory(16)` or `Memory("16G")`, in GiB."""

    def __init__(self, M: Amount, units: Iterable[str] = ()) -> None:  # noqa: N803
        super().__init__("ram", M, units)


class Vram(_Bytes):
    """Memory of a GPU: `Vram("8G")`, or a number of GiB."""

    def __init__(self, amount: Amount, units: Iterable[str] = ()) -> None:
        super().__init__("vram", amount, units)


class Cores(Kind):
    """CPU cores: so many, as in `Cores(3)`, or named ones, as in `Cores([6, 7, 9])`."""

    def __init__(self, N: float | Iterable[int]) -> None:  # noqa: N803 -- Grain's name
        names = sorted(N) if isinstance(N, Iterable) else None
        super().__init__("cpu", N if names is None else len(names))  # type: ignore[arg-type]
        self._is_named = names is not None
        self._cores = None if names is None else set(names)
        if names is not None:
            self.units = [str(core) for core in names]

    @property
    def N(self) -> float:  # noqa: N802 -- Grain's name
        """How many there are."""
        return decimal_number(self.amount)

    @property
    def c(self) -> set[int]:
        """The numbers of those that are left."""
        if self._cores is None:
            self._cores = set(range(-(-self.amount // WHOLE)))
        return self._cores

    def capacity(self) -> Units:
        """Return the units of a machine that has these."""
        if self._is_named or self.amount % WHOLE == 0:
            return {str(core): WHOLE for core in sorted(self.c)}
        return super().capacity()

    def _repr(self) -> str:
        left = sorted(self.c)
        if self._is_named or len(left) * WHOLE < self.amount:
            return f"CPU({left})"
        return f"Cores({self._written()})"

    def _request(self, res: Any) -> bool:  # noqa: ANN401
        return bool(len(self.c) * WHOLE >= res.amount)

    def _alloc(self, res: Any) -> Cores:  # noqa: ANN401
        if not self._request(res):
            raise ValueError(f"{self!r} cannot allocate {res.N} core(s)")
        taken = sorted(self.c)[: -(-res.amount // WHOLE)]
        self.c.difference_update(taken)
        return Cores(taken)

    def _dealloc(self, res: Any) -> None:  # noqa: ANN401
        self.c.update(res.c)


CPU = Cores


def Node(N: float | Iterable[int], M: Amount) -> Resource:  # noqa: N802, N803
    """Return the cores and memory of a machine."""
    return Cores(N) & Memory(M)


class WTime(Resource):
    """Time: `WTime(T=3600)` limits a task, with `countdown` it is what is left of it.

    A task is started while at least `softT` seconds are left, and is ended after `T`.
    `T` may be written `"1:30:00"` or `"2-00:00:00"`. Nobody gives time back.
    """

    def __init__(
        self,
        *,
        T: float | str,  # noqa: N803 -- Grain's names
        softT: float | None = None,  # noqa: N803
        countdown: bool = False,
    ) -> None:
        super().__init__()
        self.T = _seconds(T)
        self.softT = softT or self.T
        self.deadline = time.time() + self.T if countdown else 0.0

    def left_s(self) -> float:
        """Return how much is left."""
        return max(self.deadline - time.time(), 0) if self.deadline else self.T

    def _repr(self) -> str:
        left_s = self.left_s()
        if isinf(left_s):
            return "WTime(T=inf)"
        hours, rest = divmod(int(left_s), _HOUR_S)
        minutes, seconds = divmod(rest, _MINUTE_S)
        return f"WTime(T='{hours:02}:{minutes:02}:{seconds:02}')"

    def _request(self, res: WTime) -> bool:
        return self.left_s() >= res.softT

    def _alloc(self, res: WTime) -> WTime:
        if not self._request(res):
            raise ValueError(f"{self!r} cannot allocate {res!r}")
        return res


def _seconds(time_given: float | str) -> float:
    if not isinstance(time_given, str):
        return inf if time_given > _TEN_YEARS_S else time_given
    days, _, clock = time_given.rpartition("-")
    try:
        hours, minutes, seconds = (int(field) for field in clock.split(":"))
        whole_days = int(days) if days else 0
    except ValueError:
        raise ValueError(
            f"`{time_given}` is not a time: write 1:30:00 or 2-00:00:00"
        ) from None
    return _DAY_S * whole_days + _HOUR_S * hours + _MINUTE_S * minutes + seconds


def counted(res: Resource) -> Request:
    """Return what is asked for of the kinds that Grass counts."""
    found = [
        (name, part.amount)
        for name, part in res.parts.items()
        if isinstance(part, Kind) and part.amount
    ]
    return tuple(sorted(found))


def own_parts(res: Resource) -> dict[str, Resource]:
    """Return the parts that are asked themselves what they can afford."""
    return {n: part for n, part in res.parts.items() if not isinstance(part, Kind)}


def capacity_of(res: Resource) -> Capacity:
    """Return the units of a machine that has these resources."""
    parts = {n: part for n, part in res.parts.items() if isinstance(part, Kind)}
    return {name: part.capacity() for name, part in parts.items() if part.amount}


def given(allocation: Allocation) -> Resource:
    """Return what a task holds that was given these units."""
    held: dict[str, Resource] = {}
    for kind, units in allocation.items():
        names = sorted(units, key=unit_order)
        held[kind] = part_of(kind, decimal_number(sum(units.values())), names)
    return combined(held)


def part_of(kind: str, amount: Amount, units: list[str]) -> Kind:
    """Return an amount of a kind, with the names of its units."""
    if kind == "cpu" and units and all(name.isdecimal() for name in units):
        return Cores([int(name) for name in units])
    if kind in _CLASSES:
        return _CLASSES[kind](amount, units)
    return Kind(kind, amount, units)


_CLASSES = {"ram": Memory, "gpu": Gpu, "vram": Vram}


def resource_from(asked: Resource | Mapping[str, Amount] | None) -> Resource:
    """Read what is asked for, such as `{"gpu": 0.5}`; None is one core."""
    if isinstance(asked, Resource):
        return asked
    amounts = {"cpu": 1} if asked is None else asked
    parts = {
        kind: Cores(amount)  # type: ignore[arg-type]
        if kind == "cpu"
        else part_of(kind, amount, [])
        for kind, amount in amounts.items()
    }
    return combined(parts)
