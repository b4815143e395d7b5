"""`grass logs`: print what a job wrote, byte for byte."""

import codecs
import sys
from collections.abc import Iterable

from grass.cli.options import Command, Option, one_word, read
from grass.cli.printing import print_document, warn
from grass.client.client import Client
from grass.client.connection import Broken

OPTIONS = (
    Option("-f, --follow", about="go on until the job has ended"),
    Option("--attempt", "N", "another attempt than the last"),
    Option("--stderr", about="the file given with `enqueue --stderr`"),
    Option("--json", about="print JSON objects, each with a piece of text"),
)


def run(words: list[str]) -> int:
    """Copy a job's output to stdout."""
    values, rest = read(OPTIONS, words)
    job = one_word(rest, "the job")
    with Client() as client:
        follow = values.has("follow")
        pieces = client.output(
            client.job(job)["id"] if follow else job,
            follow=follow,
            attempt=values.whole_number("attempt"),
            stderr=values.has("stderr"),
        )
        try:
            (_print_json if values.has("json") else _copy)(pieces)
        except Broken:
            warn("the daemon went away before all was read")
            return 1
    return 0


def _copy(pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _print_json(pieces: Iterable[bytes]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    for piece in pieces:
        print_document({"text": decoder.decode(piece)})
        sys.stdout.flush()
    left = decoder.decode(b"", final=True)
    if left:
        print_document({"text": left})


COMMAND = Command(
    usage="[-f] [--attempt N] [--stderr] [--json] JOB",
    about="Print what a job wrote to stdout and stderr, byte for byte.",
    options=OPTIONS,
    examples=("grass logs 7", "grass logs -f last"),
    run=run,
)
