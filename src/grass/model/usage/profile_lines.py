"""Profiles as text: one JSON object on each line, to be kept or carried elsewhere.

Every line is checked before anything is made of them; an error names the line and the
field. An empty line is passed over.
"""

from typing import Annotated

import msgspec

from grass.errors import UsageError
from grass.model.field_readers import LONGEST_JOB_TYPE
from grass.model.times import LATEST
from grass.model.usage.profiles import MOST_SAMPLES, MeasuredRun, Profile, SampleEnd

LARGEST_SIZE = 2**50
MOST_MARKS = 40
"""Of the curve of an attempt's memory, whose time doubles with each."""
LONGEST_MODEL = 256
_Size = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_SIZE)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e10)]
_Type = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_JOB_TYPE)]


class SampleLine(msgspec.Struct, forbid_unknown_fields=True):
    """A sample as a line has it: its fields, checked."""

    job: _Count
    at: Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
    peak: _Size
    ran_s: _Seconds = 0.0
    to_peak_s: _Seconds | None = None
    end: SampleEnd = "succeeded"
    marks: Annotated[tuple[_Size, ...], msgspec.Meta(max_length=MOST_MARKS)] = ()


class ProfileLine(msgspec.Struct, forbid_unknown_fields=True):
    """A profile as a line has it: its fields, checked."""

    job_type: _Type
    model: Annotated[str, msgspec.Meta(max_length=LONGEST_MODEL)]
    samples: Annotated[list[SampleLine], msgspec.Meta(max_length=MOST_SAMPLES)] = []
    runs: _Count = 0
    failures: _Count = 0


def read_profiles(text: str) -> list[Profile]:
    """Read all profiles of a text, or raise an error about the first bad line."""
    found: dict[tuple[str, str], Profile] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        profile = _profile(number, line)
        key = profile.job_type, profile.model
        if key in found:
            raise _wrong(number, f"`{key[0]}` on `{key[1]}` is there already")
        found[key] = profile
    return list(found.values())


def _profile(number: int, line: str) -> Profile:
    try:
        read = msgspec.json.decode(line, type=ProfileLine)
    except UnicodeEncodeError:
        raise _wrong(number, "it is no text") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _wrong(number, str(error)) from None
    for name in ("job_type", "model"):
        if not getattr(read, name).isprintable():
            raise _wrong(number, f"`$.{name}` is no text that can be shown")
    samples = [MeasuredRun(**msgspec.structs.asdict(one)) for one in read.samples]
    runs = max(read.runs, len(samples))
    return Profile(read.job_type, read.model, samples, runs, read.failures)


def _wrong(number: int, why: str) -> UsageError:
    hint = "nothing was changed; `grass profile export` writes such lines"
    return UsageError(f"line {number}: {why}", hint)
