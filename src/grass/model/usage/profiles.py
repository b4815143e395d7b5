"""Profiles: what attempts of one job type were measured to use on one model of GPU.

A sample is one attempt; a profile keeps the last of them. What follows from the samples
for the next attempt is decided in the broker's core. Sizes are bytes.
"""

from typing import Literal

import msgspec

MOST_SAMPLES = 50
"""How many attempts a profile remembers."""

SampleEnd = Literal["running", "succeeded", "failed", "out-of-memory"]
"""How far an attempt had come: one that failed may have needed more later."""


class MeasuredRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one attempt used of a GPU, at most."""

    job: int
    at: int
    """When it was noted."""
    peak: int
    """Of the GPU that it used most of; out of memory: what it could have had."""
    ran_s: float = 0.0
    to_peak_s: float | None = None
    """How long after its start the peak was reached."""
    end: SampleEnd = "succeeded"
    marks: tuple[int, ...] = ()
    """The most that it had used 1, 2, 4, 8 and so on seconds after its start."""


class Profile(msgspec.Struct, omit_defaults=True):
    """What is known of a job type on one model of GPU."""

    job_type: str
    model: str
    """The name of the GPU; empty: it tells none."""
    samples: list[MeasuredRun] = []
    """The last ones, the oldest first."""
    runs: int = 0
    """How many attempts were measured, those that are forgotten included."""
    failures: int = 0
    """Attempts in a row that ended before they told what the type needs."""
