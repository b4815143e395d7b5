"""The past of a lab: jobs that ran for seconds are given the hours they stand for.

The daemon is stopped meanwhile; its jobs run on. Its database is told other times,
owners and units, and histories of usage are written as its worker would have.
"""

import json
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.homes import GrassHome

HOURS = 6
STEP_S = 10
MEMORY = {0.5: 17.2, 1: 41.0}
"""GiB that a job uses of a GPU, by its share."""
_GIB = 2**30
_MINUTE_US = 60_000_000
_MOMENTS = {"enqueued": "created", "started": "began", "finished": "ended"}


@dataclass(frozen=True)
class Span:
    """Whose a job is and when things happened to it, in minutes before now."""

    owner: str
    created: float
    began: float | None = None
    ended: float | None = None
    gpu: dict[int, float] = field(default_factory=dict)
    """The share of each GPU that it has."""
    cpu: int = 2
    busy: int = 0
    """How much of its GPUs it uses, in percent."""

    @property
    def length_s(self) -> float:
        """How long it ran, up to now where it still does."""
        return ((self.began or 0) - (self.ended or 0)) * 60

    def units(self, number: int) -> dict[str, dict[str, float]]:
        """Return what it holds, with cores of its own."""
        first = number * 2 % 16
        units: dict[str, dict[str, float]] = {
            "cpu": {str((first + n) % 16): 1 for n in range(self.cpu)},
            "gpu": {str(unit): share for unit, share in self.gpu.items()},
        }
        return {kind: named for kind, named in units.items() if named}


def rewind(home: GrassHome, spans: dict[int, Span]) -> None:
    """Have jobs begun and ended when their spans say."""
    now_us = time.time_ns() // 1000
    with closing(sqlite3.connect(home.folder / "grass.db")) as store, store:
        for id, span in spans.items():
            _retell(store, id, span, now_us)
        _set_events(store, spans, now_us)
    for id, span in spans.items():
        if span.began is not None:
            _write(_usage_file(home, id), _points_of(span, id))
    for unit in range(4):
        file = home.folder / "output" / ".machine" / f"gpu-{unit}.usage"
        _write(file, _points_of_gpu(spans, unit, now_us / 1e6))


def _retell(store: sqlite3.Connection, id: int, span: Span, now_us: int) -> None:
    def at(ago: float | None) -> int | None:
        return None if ago is None else _moment(now_us, ago, id)

    [(body,)] = store.execute("SELECT body FROM jobs WHERE id = ?", (id,))
    job = json.loads(body or "{}")
    if span.began is not None:
        job["started_at"] = at(span.began)
    store.execute(
        "UPDATE jobs SET created_at = ?, finished_at = ?, owner = ?, body = ?"
        " WHERE id = ?",
        (at(span.created), at(span.ended), f"token:{span.owner}",
         json.dumps(job) if job else None, id),
    )  # fmt: skip
    rows = store.execute("SELECT number, body FROM attempts WHERE job = ?", (id,))
    for number, text in rows.fetchall():
        attempt = json.loads(text) | {"started_at": at(span.began)}
        if span.ended is not None and span.began is not None:
            attempt |= {"finished_at": at(span.ended), "cpu_s": span.cpu * 900.0}
            attempt["allocation"] = {
                kind: {unit: round(share * 10_000) for unit, share in units.items()}
                for kind, units in span.units(id).items()
            }
        ran_s = None if span.ended is None else span.length_s
        store.execute(
            "UPDATE attempts SET body = ?, ran_s = ? WHERE job = ? AND number = ?",
            (json.dumps(attempt), ran_s, id, number),
        )


def _moment(now_us: int, ago: float, id: int) -> int:
    """Return a time some minutes ago; later jobs come a little later."""
    return now_us - round(ago * _MINUTE_US) + id * 1_700_000


def _set_events(store: sqlite3.Connection, spans: dict[int, Span], now_us: int) -> None:
    """Give events the times of what they tell, and the order of these."""
    rows = store.execute("SELECT seq, kind, job, actor, data FROM events").fetchall()
    told = []
    for seq, kind, job, actor, data in rows:
        span = spans.get(job)
        ago = HOURS * 60.0
        if span is not None:
            ago = getattr(span, _MOMENTS.get(kind, "created")) or span.created
            if kind == "started":
                data = json.dumps({"worker": "lab", "units": span.units(job)})
            actor = f"token:{span.owner}" if actor.startswith("uid:") else actor
        at = _moment(now_us, ago, job or 0)
        told.append((at, seq, kind, job, actor, data))
    store.execute("UPDATE events SET seq = -seq")
    for place, (at, seq, _, _, actor, data) in enumerate(sorted(told), 1):
        store.execute(
            "UPDATE events SET seq = ?, at = ?, actor = ?, data = ? WHERE seq = ?",
            (place, at, actor, data, -seq),
        )


def _usage_file(home: GrassHome, id: int) -> Path:
    query = "SELECT body ->> 'output' FROM attempts WHERE job = ?"
    [(output,)] = home.rows(query, id)
    return Path(output).with_suffix(".usage")


def _points_of(span: Span, id: int) -> Iterator[list[object]]:
    """Draw what a job used: it warms up, computes, and looks up once an epoch."""
    chance = random.Random(id)
    for at_s in range(STEP_S, round(span.length_s) + 1, STEP_S):
        warm = min(1.0, at_s / 240)
        busy = _busy(span, at_s, chance)
        gpus = {
            str(unit): [int(MEMORY[share] * warm**0.3 * _GIB), busy]
            for unit, share in span.gpu.items()
        }
        memory = int((span.cpu * 1.1 + 4.5) * warm**0.5 * _GIB)
        cpu = round(span.cpu * (0.35 + busy / 260) + chance.random() * 0.3, 2)
        yield [float(at_s), float(STEP_S), memory, cpu, gpus]


def _busy(span: Span, at_s: float, chance: random.Random) -> float:
    epoch = at_s % 190
    level = 0.25 if epoch < 20 else 1.0
    return round(min(100.0, max(0.0, span.busy * level + chance.uniform(-4, 4))), 1)


def _points_of_gpu(
    spans: dict[int, Span], unit: int, now_s: float
) -> Iterator[list[object]]:
    chance = random.Random(unit)
    for ago in range(HOURS * 3600, 0, -STEP_S):
        on = [
            (one, began_s - ago)
            for one in spans.values()
            if unit in one.gpu
            and (began_s := (one.began or 0) * 60) >= ago > began_s - one.length_s
        ]
        busy = sum(_busy(one, ran_s, chance) for one, ran_s in on)
        held = int(sum(MEMORY[one.gpu[unit]] for one, _ in on) * _GIB)
        use = {str(unit): [held, min(100.0, busy)]}
        yield [round(now_s - ago, 2), float(STEP_S), held, None, use]


def _write(file: Path, points: Iterator[list[object]]) -> None:
    lines = [json.dumps(point, separators=(",", ":")) for point in points]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
