"""Histories of usage: thinned with age, bounded, and never without their peaks."""

from itertools import pairwise
from pathlib import Path

from grass.model.usage.attempt_usage import ResourceUse, UnitUse, UsagePoint
from grass.worker.core.usage.history_thinning import (
    MOST_POINTS,
    joined,
    peak_of,
    thinned,
)
from grass.worker.shell.usage.usage_files import (
    UsageFiles,
    parsed,
    read_points,
    recorded_peak,
)


def every_second(first: int, count: int, step: int = 1) -> list[UsagePoint]:
    return [
        UsagePoint(float(at), float(step), at % 997, 0.5, {"0": (at % 991, 50.0)})
        for at in range(first, first + count, step)
    ]


def test_a_week_takes_a_bounded_number_of_points_and_keeps_its_peaks() -> None:
    kept: list[UsagePoint] = []
    longest = 0
    for begin in range(1, 7 * 86_400, 5000):
        kept += every_second(begin, 5000, step=20)
        if len(kept) > MOST_POINTS:
            kept = thinned(kept)
        longest = max(longest, len(kept))

    assert longest <= MOST_POINTS + 250
    assert len(thinned(kept)) < MOST_POINTS * 0.9
    assert peak_of(kept) == ResourceUse(996, 0.5, {"0": UnitUse(990, 50.0)})
    # Without a gap: each point begins where the one before it ended.
    for one, other in pairwise(kept):
        assert abs(other.at_s - other.span_s - one.at_s) < 0.1


def test_the_last_ten_minutes_are_kept_as_they_are() -> None:
    points = every_second(1, 7200)

    kept = thinned(points)

    assert kept[-590:] == points[-590:]
    assert len(kept) < 1200


def test_joined_points_have_the_largest_size_and_the_mean_of_rates() -> None:
    one = UsagePoint(3.0, 3.0, 10, 1.0, {"0": (5, None)})
    other = UsagePoint(4.0, 1.0, 7, 3.0, {"0": (6, 40.0), "1": (1, 2.0)})

    both = joined(one, other)

    assert both == UsagePoint(4.0, 4.0, 10, 1.5, {"0": (6, 40.0), "1": (1, 2.0)})


def test_a_file_is_appended_to_and_thinned_when_it_is_long(tmp_path: Path) -> None:
    path, files = str(tmp_path / "new" / "1.usage"), UsageFiles()
    for begin in range(1, 6000, 100):
        files.append({path: every_second(begin, 100)})

    # Another daemon goes on where this one ended.
    UsageFiles().append({path: every_second(6001, 1)})

    points = read_points(path)
    assert points[-1].at_s == 6001.0
    assert len(points) <= MOST_POINTS
    peak = recorded_peak(path)
    assert peak is not None
    assert peak.memory == 996
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["1.usage"]


def test_a_line_that_was_not_written_whole_is_left_out() -> None:
    assert parsed(b'[1.0,1.0,5,null,{}]\n[2.0,1.0,\n[3.0,1.0,7,0.5,{"0":[1,2]}]\n') == [
        UsagePoint(1.0, 1.0, 5),
        UsagePoint(3.0, 1.0, 7, 0.5, {"0": (1, 2.0)}),
    ]


def test_a_file_that_cannot_be_written_concerns_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    UsageFiles().append({str(tmp_path / "file" / "1.usage"): every_second(1, 1)})
