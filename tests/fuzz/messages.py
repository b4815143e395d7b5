"""Valid messages of the link, as a place to start from."""

from typing import Any

import msgspec

from grass.link import messages as m
from grass.link.requests import LineScan, MatchedLine, ScannedLines
from grass.model.amount_text import WHOLE
from grass.model.usage.attempt_usage import AttemptUsage, ResourceUse, UnitUse
from grass.model.usage.gpu_use import GpuUse, GpuUser
from tests.support.building import BOOT, WORKER, units

ONE_CORE = {"cpu": {"0": WHOLE}}
HALF = {"cpu": {"1": WHOLE // 2}, "ram": {"0": WHOLE}}
USE = ResourceUse(5, 0.5, {"0": UnitUse(7, 80.0)}, "by difference")
SCANNED = ScannedLines(9, 12, 2, [(1, 4)], 1, [MatchedLine(1, 4, b"x")])
STRANGE = f"{'0' * 16}.7.1"
"""An attempt of another database."""


def names(cluster: str) -> list[str]:
    """Name attempts that a broker knows, one that it does not, and a stranger's."""
    return [*(f"{cluster}.{job}.1" for job in (1, 2, 3, 99)), STRANGE]


def said_by_worker(cluster: str) -> list[Any]:
    """Give what a worker says, as documents."""
    first, second, *_, unknown, strange = names(cluster)
    report = m.Report(second, ONE_CORE, True, 100, 5, "/o", 3, None, True, 0, True)
    said = [
        m.Hello(
            WORKER,
            "desk",
            BOOT,
            units("{cpu:2,ram:[4]}"),
            [report, m.Report(unknown, HALF, False), m.Report(strange, ONE_CORE, True)],
            [m.Exited(first, 7, 0, output_bytes=3, max_rss=9, cpu_s=0.5)],
            [m.Started(first, 9, 5, "/out", 1, "/err", 2)],
        ),
        m.Hello("other", "desk2", "boot-2", units("{gpu:2,vram:[8,8]}"), [], []),
        m.Started(first, 100, 5, "/out", 1, "/err", 2),
        m.Exited(first, 7, 3, None, "it failed"),
        m.Exited(second, 7, None, 9, "killed", True, 10, 11, 0.25),
        m.Exited(strange, 7, 0),
        m.Returned(second, m.RECALLED),
        m.Returned(first, "cpu 0 is given out already"),
        report,
        m.OutputData(1, b"x", True),
        m.OutputData(1, b"", scanned=SCANNED),
        m.InputTaken(1, 3, True, "none"),
        m.Devices(
            1,
            [
                GpuUse("0", "card", users=[GpuUser(9, 7, 1, "you", "x", second)]),
                GpuUse("0.1", memory=8, used=7, attempts={second: 7}),
            ],
        ),
        m.UsageData(1, {first: AttemptUsage(USE, USE)}),
        m.Exited(second, 7, 0, peak=USE, usage="/u"),
        m.Removed(1),
        m.Removed(1, 2, "it is busy"),
    ]
    return [msgspec.to_builtins(one, builtin_types=(bytes,)) for one in said]


def said_by_broker() -> list[Any]:
    """Give what a broker says, as documents."""
    first, second, third, *_ = names("a" * 16)
    start = m.Start(
        first,
        1,
        1,
        "fit",
        "p",
        ("A=1", "python", "{gpu}{index}"),
        False,
        ONE_CORE,
        cwd="/",
        base_env={"PATH": "/bin"},
        env=(("X", "{id}"),),
        umask=18,
        output="/tmp/{id}",
        stderr="err",
        max_output=100,
        time_limit_s=5,
        limit_signal="USR1@2",
        nice=3,
        index=4,
        pin=True,
    )
    said = [
        m.Welcome("a" * 16),
        m.KnownUnits({"cpu": {"0": WHOLE, "1": WHOLE}}),
        start,
        m.Start(second, 2, 1, "n", "p", ("a b",), True, ONE_CORE, after=first),
        m.Start(third, 3, 1, "n", "p", ("x",), False, HALF, ("echo",), raw=True),
        m.Stop(first, 3.0),
        m.Suspend(first),
        m.Continue(first),
        m.Signal(first, 10),
        m.Recall([second]),
        m.Forget([first, third]),
        m.Resync(),
        m.ReadOutput(1, "/tmp/1", 0, 10, True),
        m.ReadOutput(1, "/tmp/1", 0, 1, scan=LineScan(9, "a|b", 2)),
        m.CloseOutput(1),
        m.ReadUsage(1, [first]),
        m.WriteInput(1, first, "me", 0, b"x", True, (24, 80)),
        m.ReadDevices(1),
        m.RemoveOutput(["/tmp/1"], 1),
    ]
    return [msgspec.to_builtins(one, builtin_types=(bytes,)) for one in said]


def said_by_keeper() -> list[dict[str, Any]]:
    """Give lines of a keeper about the same attempts."""
    first, second, third, *_ = names("a" * 16)
    meta = {"allocation": ONE_CORE, "output": "/o", "stderr": None, "after": None}
    listed = {"id": first, "state": "running", "meta": meta, "started_at": 5, "pid": 7}
    ended = {"id": second, "state": "exited", "meta": meta, "at": 9, "code": 3}
    return [
        {"e": "hello", "attempts": [listed, ended]},
        {"e": "hello", "attempts": []},
        {"e": "started", "id": first, "pid": 7, "at": 5, "ticks": 9},
        {"e": "exited", "id": first, "at": 7, "code": 0, "rusage": {"user_s": 1.0}},
        {"e": "recalled", "id": third},
        {"e": "error", "message": "no", "id": first},
    ]
