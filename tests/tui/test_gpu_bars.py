"""The lines of GPUs."""

from datetime import UTC, datetime, timedelta
from typing import Any

from grass.cli.printing.signs import ASCII, UNICODE
from grass.cli.printing.styled import cells
from grass.tui.gpu_bars import Room, gpu_lines

NOW = datetime(2026, 8, 3, 12, tzinfo=UTC)
GIB = 2**30


def gpu(unit: str, **changes: Any) -> dict[str, Any]:
    memory = {"total": 80, "jobs": 30, "reserved": 10, "strangers": 4, "free": 36}
    return {
        "unit": unit,
        "name": "Card",
        "memory": {part: size * GIB for part, size in memory.items()},
        "utilization": 50,
        "temperature": 61,
        "power_w": 312.0,
        "fault": None,
        "drained": False,
        "jobs": [{"job": 7, "name": "fit"}],
        "processes": [
            {"job": 7, "command": "python", "pid": 1},
            {"job": None, "command": "X", "pid": 2},
        ],
        **changes,
    }


def devices(*gpus: dict[str, Any], worker: str = "desk") -> dict[str, Any]:
    told = {"name": worker, "problem": None, "stale": False}
    return {"workers": [{**told, "gpus": list(gpus)}]}


def drawn(
    document: dict[str, Any], width: int = 80, height: int = 8, **how: Any
) -> list[str]:
    room = Room(width, height, how.get("roomy", False))
    strips, signs = how.get("strips", {}), how.get("signs", UNICODE)
    return [str(line) for line in gpu_lines(document, strips, room, signs, NOW)]


def test_a_line_has_the_memory_in_four_parts_and_who_is_there() -> None:
    (line,) = drawn(devices(gpu("0")))
    assert line.startswith("gpu 0 ███████▒▒▓░░░░░░░░")
    assert "34G of 80G" in line
    assert "50%" in line
    assert line.endswith("7 fit, X (pid 2)")


def test_a_fault_stands_in_place_of_who_is_there() -> None:
    (line,) = drawn(devices(gpu("0", fault={"why": "it is lost"}, utilization=None)))
    assert line.endswith("it is lost")


def test_a_worker_that_does_not_answer_is_marked() -> None:
    document = devices(gpu("0"))
    document["workers"][0]["stale"] = True
    (line,) = drawn(document, 120)
    assert line.endswith("late to answer, 7 fit, X (pid 2)")
    document["workers"][0]["problem"] = "the worker is unreachable"
    (line,) = drawn(document, 120)
    assert "the worker is unreachable, 7 fit" in line


def test_every_line_fits_and_what_has_no_room_is_counted() -> None:
    many = devices(*(gpu(str(unit)) for unit in range(16)))
    for width in (40, 80, 120, 200):
        lines = drawn(many, width)
        assert len(lines) == 8
        assert all(cells(line) <= width for line in lines)
    assert drawn(many)[-1].startswith("and 9 more GPUs")


def test_with_room_there_is_a_second_line_with_the_last_hour() -> None:
    points = [
        {
            "at": (NOW - timedelta(minutes=minutes)).isoformat(),
            "gpus": {"0": {"memory": 1, "utilization": share}},
        }
        for minutes, share in ((50, 100), (1, 14), (600, 100))
    ]
    strips = {("desk", "0"): points}
    first, second = drawn(devices(gpu("0")), 120, strips=strips, roomy=True)
    assert "61°C  312W" in first
    assert "█ jobs 30G  ▒ reserved 10G  ▓ strangers 4G  ░ free 36G" in second
    strip = second.partition("last hour ")[2][:24]
    assert strip == "···" + "█" + "·" * 19 + "▂"
    plain = drawn(devices(gpu("0")), 120, strips=strips, roomy=True, signs=ASCII)
    assert "".join(plain).isascii()


def test_gpus_of_several_machines_have_its_name() -> None:
    both = {
        "workers": [
            *devices(gpu("0"))["workers"],
            *devices(gpu("0"), worker="rack")["workers"],
        ]
    }
    assert [line.split()[:2] for line in drawn(both)] == [["desk", "0"], ["rack", "0"]]


def test_what_is_used_is_told_without_what_is_only_reserved() -> None:
    (line,) = drawn(devices(gpu("0")))
    assert " 34G of 80G" in line
    unknown = {**gpu("0")["memory"], "jobs": None}
    (line,) = drawn(devices(gpu("0", memory=unknown)))
    assert " ? of 80G" in line
