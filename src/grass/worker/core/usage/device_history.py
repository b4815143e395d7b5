"""The history of each GPU of this machine, with all its users.

Looks are joined to points of ten seconds, which are written now and then. Files are
thinned with age, like those of attempts, so each is a ring. Times are of the wall
clock: the history goes on over restarts of the machine.
"""

from grass.devices.readings import GpuReading
from grass.model.usage.attempt_usage import UsagePoint
from grass.worker.core.usage.history_thinning import joined

POINT_S = 10.0
MOST_WAITING = 6
"""With more points of one GPU than this, they are written."""


class DeviceHistory:
    """Points of GPUs that are not yet written."""

    def __init__(self, folder: str) -> None:
        """`folder` is the worker's own for output."""
        self._folder = folder
        self._last_s: float | None = None
        self._open: dict[str, UsagePoint] = {}
        self._closed: dict[str, list[UsagePoint]] = {}
        self._seen: set[str] = set()

    def note(self, gpus: tuple[GpuReading, ...], at_s: float) -> None:
        """Add a look."""
        span_s = 0.0 if self._last_s is None else max(0.0, at_s - self._last_s)
        self._last_s = at_s
        for gpu in gpus:
            if gpu.fault is not None:
                continue
            use: dict[str, tuple[int | None, float | None]]
            use = {gpu.unit: (gpu.used, gpu.utilization)}
            self._seen.add(gpu.unit)
            point = UsagePoint(round(at_s, 2), round(span_s, 2), gpu.used, None, use)
            before = self._open.pop(gpu.unit, None)
            whole = point if before is None else joined(before, point)
            if whole.span_s >= POINT_S:
                self._closed.setdefault(gpu.unit, []).append(whole)
            else:
                self._open[gpu.unit] = whole

    def take(self, *, every: bool = False) -> dict[str, list[UsagePoint]]:
        """Return the points that are to be written, by file; or every one."""
        if every:
            for unit, point in self._open.items():
                self._closed.setdefault(unit, []).append(point)
            self._open = {}
        due = every or any(len(one) >= MOST_WAITING for one in self._closed.values())
        if not due:
            return {}
        taken, self._closed = self._closed, {}
        return {self.file_of(unit): points for unit, points in taken.items()}

    def files(self) -> dict[str, str]:
        """Return the file of each GPU that was seen."""
        return {unit: self.file_of(unit) for unit in sorted(self._seen)}

    def file_of(self, unit: str) -> str:
        """Return the file of a GPU."""
        return f"{self._folder}/.machine/gpu-{unit}.usage"
