"""Kinds that Grass counts, so that the scheduler places them: cores, memory, GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grass.errors import UsageError
from grass.model.amount_text import WHOLE, amount_text, decimal_text
from grass.model.amounts import decimal_number, request_amount
from grass.model.resources import (
    Allocation,
    Capacity,
    Request,
    Units,
    kind_name,
    unit_order,
)
from grass.resource.parts import Resource, combined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Amount = float | str
    Asked = Resource | Mapping[str, Amount] | None


class Kind(Resource):
    """An amount of a kind that Grass counts: `Kind("printer", 1)`."""

    def __init__(self, kind: str, amount: Amount, units: Iterable[str] = ()) -> None:
        self.kind = kind_name(kind) if type(self) is Kind else kind
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
        is_list = isinstance(N, Iterable) and not isinstance(N, str)
        names = sorted(N) if is_list else None  # type: ignore[arg-type]
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


def counted(res: Resource) -> Request:
    """Return what is asked for of the kinds that Grass counts."""
    found = [
        (name, part.amount)
        for name, part in res.parts.items()
        if isinstance(part, Kind) and part.amount
    ]
    return tuple(sorted(found))


def request_of(res: Resource) -> Request | None:
    """Return what is asked for, if Grass counts all of it; otherwise None."""
    found = []
    if not isinstance(res, Resource):
        raise no_resource(res)
    for name, part in res.parts.items():
        if not isinstance(part, Kind):
            return None
        if part.amount:
            found.append((name, part.amount))
    found.sort()
    return tuple(found)


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


def resource_from(asked: Asked) -> Resource:
    """Read what is asked for, such as `{"gpu": 0.5}`; None is one core."""
    if isinstance(asked, Resource):
        return asked
    amounts = {"cpu": 1} if asked is None else asked
    if not isinstance(amounts, Mapping):
        raise no_resource(asked)
    parts = {
        kind: Cores(amount)  # type: ignore[arg-type]
        if kind == "cpu"
        else part_of(kind, amount, [])
        for kind, amount in amounts.items()
    }
    return combined(parts)


def no_resource(given: object) -> UsageError:
    """Return the error of what is no resource."""
    return UsageError(
        f"{given!r} is no resource",
        "say first what a task asks for: `Cores(1)`, `Gpu(0.5) & Memory(8)`, `ZERO`",
    )
