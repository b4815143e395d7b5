"""`WTime`: how long a task may take, and how much time a program has left.

A limit may be left to be found out: tasks of one `group` have none until eight of them
have returned, each after ten seconds or more. From then on the limit is their mean time
and five standard deviations. What was found out is kept while the program runs.
"""

from __future__ import annotations

import time
from math import inf, isinf
from statistics import fmean, stdev

from grass.resource.parts import Resource

_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60
_TEN_YEARS_S = 10 * 365 * _DAY_S
RUNS = 8
"""How many tasks of a group are measured to tell how long the others may take."""
_SHORT_S = 10
"""A shorter run tells nothing: it had nothing to do."""
_runs: dict[str, list[float]] = {}
_limits: dict[str, WTime] = {}


class WTime(Resource):
    """Time: `WTime(T=3600)` limits a task, with `countdown` it is what is left of it.

    A task is started while at least `softT` seconds are left, and is ended after `T`.
    `T` may be written `"1:30:00"` or `"2-00:00:00"`. Nobody gives time back. With
    `group="fit"` the limit is found out: mean and five standard deviations of the first
    eight tasks of that group that took ten seconds or more, and two for `softT`.
    """

    def __init__(
        self,
        *,
        T: float | str | None = None,  # noqa: N803 -- Grain's names
        softT: float | None = None,  # noqa: N803
        group: str | None = None,
        countdown: bool = False,
    ) -> None:
        super().__init__()
        if T is None and group is None:
            raise ValueError("a `WTime` needs a time or a group: `WTime(T=60)`")
        self.T = inf if T is None else _seconds(T)
        self.softT = softT or self.T
        self.group = group
        self.deadline = time.time() + self.T if countdown else 0.0
        self._began = 0.0

    def left_s(self) -> float:
        """Return how much is left."""
        return max(self.deadline - time.time(), 0) if self.deadline else self.T

    def known(self) -> WTime | None:
        """Return the limit that holds now; None: that of its group is not known yet."""
        return self if self.group is None else _limits.get(self.group)

    def note_run(self, seconds: float) -> None:
        """Note how long a task took that had this limit, and has returned."""
        if self.group is None or self.group in _limits or seconds < _SHORT_S:
            return
        runs = _runs.setdefault(self.group, [])
        runs.append(seconds)
        if len(runs) == RUNS:
            mean, deviation = fmean(runs), stdev(runs)
            _limits[self.group] = WTime(
                T=round(mean + 5 * deviation), softT=round(mean + 2 * deviation)
            )
            del _runs[self.group]

    def _repr(self) -> str:
        known = self.known()
        if known is None:
            return f"WTime(group={self.group!r})"
        left_s = known.left_s()
        if isinf(left_s):
            return "WTime(T=inf)"
        hours, rest = divmod(int(left_s), _HOUR_S)
        minutes, seconds = divmod(rest, _MINUTE_S)
        return f"WTime(T='{hours:02}:{minutes:02}:{seconds:02}')"

    def _request(self, res: WTime) -> bool:
        known = res.known()
        return known is None or self.left_s() >= known.softT

    def _alloc(self, res: WTime) -> WTime:
        if not self._request(res):
            raise ValueError(f"{self!r} cannot allocate {res!r}")
        known = res.known()
        if known is None:
            known = WTime(group=res.group)
            known._began = time.time()
        return known

    def _dealloc(self, res: WTime) -> None:
        if res._began:
            res.note_run(time.time() - res._began)


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
