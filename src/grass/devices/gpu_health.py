"""Whether a GPU may be used after an error: pure, by what was reported and when.

An error keeps a GPU out of use for a while, and longer if it comes again or the driver
says that something has to be done first. Then it is back by itself.
"""

from grass.devices.gpu_reports import DeviceReport

QUIET_S = 300.0
"""How long there must be no error before a GPU is used again."""


class GpuHealth:
    """What is known of the errors of one GPU."""

    def __init__(self, quiet_s: float = QUIET_S) -> None:
        self._quiet_s = quiet_s
        self._error = ""
        self._at_s = 0.0
        self._uncorrected: int | None = None
        self._trouble: str | None = None

    def note(self, report: DeviceReport, now_s: float) -> None:
        """Take in a report; of memory errors only new ones count."""
        self._trouble = report.trouble
        count, known = report.uncorrected, self._uncorrected
        if count is not None:
            self._uncorrected = count
            if known is not None and count > known:
                self._failed("a memory error that could not be corrected", now_s)
        for error in report.errors:
            self._failed(error, now_s)

    def fault(self, now_s: float) -> str | None:
        """Return why the GPU may not be used now."""
        if self._error and now_s - self._at_s < self._quiet_s:
            return self._error
        return self._trouble

    def _failed(self, error: str, now_s: float) -> None:
        self._error, self._at_s = error, now_s
