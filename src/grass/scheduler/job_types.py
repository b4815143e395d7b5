"""Job types: what is known of the memory that jobs of one type need.

A job whose memory is learned names its type. On a model of GPU for which an amount is
known it is packed by that amount. On any other it has a GPU to itself and is measured:
it *profiles* the type there, and no second job of the type does so at the same time.

A type is also a gate: shapes are parked with it that could only profile what another
job is profiling. They come back when that job ends or a profile is set.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from grass.scheduler.shapes import Gate, Shape

if TYPE_CHECKING:
    from grass.scheduler.worker_units import Holder


class JobType(Gate):
    """One type of jobs: known amounts, who profiles it, and the shapes that wait."""

    __slots__ = ("amounts", "profilers", "shapes")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.amounts: Mapping[str, int] = {}
        """GPU memory by model. More than a GPU has means all of it."""
        self.profilers: dict[str, Holder] = {}
        """The holder that profiles the type, by model."""
        self.shapes: dict[Shape, None] = {}

    def set_amounts(self, amounts: Mapping[str, int]) -> None:
        """Replace what is known; a model that is known needs no profiler."""
        self.amounts = dict(amounts)
        for model in self.profilers.keys() & self.amounts.keys():
            del self.profilers[model]

    def is_unknown(self, models: Iterable[str]) -> bool:
        """Return whether a job on GPUs of these models would profile the type."""
        return any(model not in self.amounts for model in models)

    def note_profiler(self, holder: "Holder", models: Iterable[str]) -> bool:
        """Record who has whole GPUs of these models; return whether it profiles."""
        unknown = [model for model in models if model not in self.amounts]
        for model in unknown:
            self.profilers.setdefault(model, holder)
        return bool(unknown)

    def remove_profiler(self, holder: "Holder") -> bool:
        """Forget a holder; return whether it was a profiler."""
        models = [model for model, one in self.profilers.items() if one == holder]
        for model in models:
            del self.profilers[model]
        return bool(models)

    def is_unused(self) -> bool:
        """Return whether nothing is known of it and no job needs it."""
        return not (self.amounts or self.profilers or self.shapes)
