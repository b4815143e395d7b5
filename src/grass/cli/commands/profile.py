"""`grass profile`: what was learned of the GPU memory of job types."""

from __future__ import annotations

import sys

from grass.cli.parsing.options import (
    BROKER,
    JSON,
    Command,
    Option,
    Values,
    at_most,
    one_word,
    read,
    refuse_options_of,
    subcommand,
)
from grass.cli.printing.streams import counted, print_document, say, warn
from grass.client.client import Client
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from grass.client.json_codec import Document

ALL = Option("--all", about="with `forget`: every type")
OPTIONS = (ALL, BROKER, JSON)
HEADER = ("TYPE", "GPU", "RESERVES", "PEAK", "RUNS", "LAST", "WHY")
SAMPLE_HEADER = ("JOB", "PEAK", "REACHED", "RAN", "END", "WHEN")


def run(words: list[str]) -> int:
    """Run the subcommand that the first word names."""
    values, rest = read(OPTIONS, words)
    known = {
        "list": _list,
        "show": _show,
        "forget": _forget,
        "export": _export,
        "import": _import,
    }
    name, handler = subcommand("profile", known, rest, default="list")
    if name != "forget":
        refuse_options_of("profile forget", (ALL,), values)
    return handler(values, rest[1:])


def _list(values: Values, rest: list[str]) -> int:
    at_most(rest, 0)
    with Client(broker=values.broker) as client:
        document = client.profiles()
    if values.has("json"):
        print_document(document)
        return 0
    from grass.cli.printing.quantities import utc_now
    from grass.cli.printing.table import Fit, lines, show, this_screen

    # Where the screen is narrow, the reason tells the peak and the number of runs.
    fit = Fit(firm=(0, 2), spare=(5, 4, 3))
    shown = rows(document["profiles"], utc_now())
    show("".join(f"{line}\n" for line in lines(HEADER, shown, this_screen(), fit=fit)))
    if not document["profiles"]:
        warn("nothing was learned yet; `grass enqueue --vram auto` has it learned")
    return 0


def rows(profiles: Iterable[Document], now: datetime) -> list[list[str]]:
    """Return a row for each type and model of GPU."""
    from grass.cli.printing.quantities import ago

    return [
        [
            one["job_type"],
            one["model"] or "any",
            "all" if one["memory"] is None else _size(one["memory"]),
            _size(one["peak"]),
            str(one["runs"]),
            ago(one["last_at"], now),
            one["why"],
        ]
        for one in profiles
    ]


def _show(values: Values, rest: list[str]) -> int:
    name = one_word(rest, "the type")
    with Client(broker=values.broker) as client:
        document = client.profiles(name)
    if values.has("json"):
        print_document(document)
        return 0
    from grass.cli.printing.quantities import utc_now
    from grass.cli.printing.table import render, show, this_screen

    now = utc_now()
    for one in document["profiles"]:
        amount = "a GPU alone" if one["memory"] is None else _size(one["memory"])
        say(f"{one['job_type']} on {one['model'] or 'any GPU'}: {amount}")
        say(f"  {one['why']}")
        show(render(SAMPLE_HEADER, _sample_rows(one["samples"], now), this_screen()))
    return 0


def _sample_rows(samples: Iterable[Document], now: datetime) -> list[list[str]]:
    from grass.cli.printing.quantities import ago, brief

    return [
        [
            str(one["job"]),
            # Of one that ran out of memory it is known what it had, and was too little.
            ("over " if one["end"] == "out-of-memory" else "") + _size(one["peak"]),
            "" if one["to_peak_s"] is None else brief(one["to_peak_s"]),
            brief(one["ran_s"]),
            one["end"],
            ago(one["at"], now),
        ]
        for one in samples
    ]


def _forget(values: Values, rest: list[str]) -> int:
    if bool(rest) == values.has("all"):
        raise UsageError("name the types to forget, or give --all")
    with Client(broker=values.broker) as client:
        known = client.profiles()["profiles"] if values.has("all") else []
        types = list(dict.fromkeys(rest or (one["job_type"] for one in known)))
        done = client.forget_profiles(types)
    if values.has("json"):
        print_document({"types": types, **done})
    else:
        say(f"forgot {counted(len(types), 'type')}")
    return 0


def _export(values: Values, rest: list[str]) -> int:
    at_most(rest, 0)
    with Client(broker=values.broker) as client:
        document = client.export_profiles()
    sys.stdout.write(document["text"])
    return 0


def _import(values: Values, rest: list[str]) -> int:
    text = _text_of(one_word(rest, "the file, or - for stdin"))
    with Client(broker=values.broker) as client:
        done = client.import_profiles(text)
    if values.has("json"):
        print_document(done)
    else:
        lines = sum(1 for line in text.splitlines() if line.strip())
        say(f"imported {counted(lines, 'profile')}")
    return 0


def _text_of(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _size(memory: int | None) -> str:
    from grass.model.amount_text import WHOLE, amount_text

    return "" if memory is None else amount_text(-(-memory * WHOLE // 2**30), "vram")


COMMAND = Command(
    usage=(
        "[--broker ADDRESS] [--json] "
        "[list | show TYPE | forget TYPE... | forget --all | export | import FILE]"
    ),
    about=(
        "Show what was learned of the GPU memory that jobs use, by type and model of "
        "GPU: what the next job with `--vram auto` gets, and why. `show` lists the "
        "jobs that were measured. `forget` has a type measured again. `export` prints "
        "a line for each profile, and `import` takes such lines over, from a file or "
        "from stdin with `-`; if one is wrong, nothing is changed."
    ),
    options=OPTIONS,
    examples=(
        "grass profile",
        "grass profile show train.py",
        "grass profile forget train.py",
        "grass profile export > profiles.jsonl",
        "grass profile import profiles.jsonl",
    ),
    run=run,
)
