"""Profiles as lines of text: they read back, and a wrong one is named."""

import pytest

from grass.errors import UsageError
from grass.model.usage.profile_lines import read_profiles
from grass.model.usage.profiles import MeasuredRun, Profile
from grass.store.bodies import json_text

GOOD = '{"job_type":"a","model":"H200"}'


def test_what_was_written_reads_back() -> None:
    sample = MeasuredRun(7, 5, 2**31, 60.5, 2.25, "running", (2**20, 2**31))
    known = [Profile("a/b.py::fit", "H200", [sample], 9, 1), Profile("c", "")]
    lines = [json_text(one) for one in known]
    assert read_profiles("\n\n".join(lines) + "\n") == known


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2: Input data was truncated"),
        ("[]", "line 2: Expected `object`"),
        ('{"job_type":"a"}', r"line 2: .*missing required field `model`"),
        ('{"job_type":"","model":"x"}', r"line 2: .*length >= 1 - at `\$.job_type`"),
        ('{"job_type":"\\u001b","model":"x"}', r"line 2: `\$.job_type` is no text"),
        ('{"job_type":"b","model":"x","size":1}', "line 2: .*unknown field `size`"),
        (
            '{"job_type":"b","model":"x","samples":[{"job":1,"at":1,"peak":-1}]}',
            r"line 2: .*`int` >= 0 - at `\$.samples\[.*\]\.peak`",
        ),
        ('{"job_type":"\udc80","model":"x"}', "line 2: it is no text"),
        (GOOD, "line 2: `a` on `H200` is there already"),
    ],
)
def test_the_first_wrong_line_is_named_with_its_field(line: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_profiles(f"{GOOD}\n{line}\n")
