"""What a resource is: parts, one of each kind, to be asked, taken and given back."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MISSING = object()


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
        if not isinstance(other, Resource):
            return NotImplemented
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
        if not isinstance(other, Resource):
            return NotImplemented
        return self.request(other)

    def __le__(self, other: Resource) -> bool:
        """Tell whether the other can afford this."""
        if not isinstance(other, Resource):
            return NotImplemented
        return other.request(self)

    def __gt__(self, other: Resource) -> bool:
        """Tell whether the other cannot afford this."""
        if not isinstance(other, Resource):
            return NotImplemented
        return not other.request(self)

    def __lt__(self, other: Resource) -> bool:
        """Tell whether the other is not affordable."""
        if not isinstance(other, Resource):
            return NotImplemented
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
