"""Lines to a keeper: answered, refused or cut off; its jobs never notice."""

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.keeper.codec import (
    BadMessage,
    BrokenLine,
    decode_entry,
    decode_verb,
    encode,
)
from grass.keeper.launch import connect, start_keeper
from grass.keeper.protocol import Entry, ErrorEntry, Verb
from tests.fuzz.dose import bounded, examples
from tests.fuzz.garbage import slipped_bytes, slipped_values, values
from tests.fuzz.messages import said_by_keeper
from tests.keeper.conversation import Daemon
from tests.support.homes import _end_jobs

PATIENCE_S = 10.0


def verbs(folder: Path) -> list[dict[str, Any]]:
    """Give a valid message of each verb."""
    start = {
        "v": "start",
        "id": "f1",
        "argv": ["true"],
        "env": {"PATH": os.environ["PATH"]},
        "cwd": str(folder),
        "umask": 18,
        "output": "out",
        "stderr": None,
        "grace": 0.1,
        "time_limit": 5.0,
        "limit_signal": 10,
        "under": [],
        "limit_signal_before": 2.0,
        "max_output": 1000,
        "nice": 1,
        "cpus": [0],
        "meta": {"allocation": {}},
        "own_output": True,
        "after": None,
    }
    return [
        start,
        {**start, "id": "f2", "after": "f1"},
        {"v": "stop", "id": "f1", "signal": 15, "grace": 0.1, "reason": "cancelled"},
        {"v": "signal", "id": "f1", "signal": 18},
        {"v": "suspend", "id": "f1"},
        {"v": "continue", "id": "f1"},
        {"v": "recall", "ids": ["f2"]},
        {"v": "forget", "ids": ["f1", "f2"]},
        {"v": "hello"},
    ]


LINES = [json.dumps(one).encode() for one in verbs(Path("/"))]


@examples(300)
@given(line=st.one_of(st.binary(max_size=60), slipped_bytes(LINES)))
def test_a_line_is_an_event_or_refused(line: bytes) -> None:
    with bounded(), contextlib.suppress(BadMessage, BrokenLine):
        assert isinstance(decode_verb(line), Verb)


@examples(300)
@given(message=st.one_of(slipped_values(verbs(Path("/"))), values))
def test_a_message_is_an_event_or_refused(message: Any) -> None:
    line = json.dumps(message).encode()
    with bounded():
        try:
            decode_verb(line)
        except BrokenLine:
            pass
        except BadMessage as error:
            encode(ErrorEntry(str(error), error.id))


@examples(300)
@given(message=st.one_of(slipped_values(said_by_keeper()), values))
def test_a_line_of_a_keeper_is_an_entry_or_refused(message: Any) -> None:
    with bounded(), contextlib.suppress(BadMessage, BrokenLine):
        entry = decode_entry(json.dumps(message).encode())
        assert entry is None or isinstance(entry, Entry)


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A keeper that holds a job, which must live through all of this."""
    folder = tmp_path_factory.mktemp("keeper")
    start_keeper(str(folder))
    daemon = Daemon(folder)
    daemon.start("witness", "sleep", "1000")
    daemon.expect("started", "witness")
    yield daemon
    known = Daemon(folder)
    states = {one["id"]: one["state"] for one in known.hello["attempts"]}
    assert states["witness"] == "running"
    assert known.keeper == daemon.keeper
    known.close()
    daemon.close()
    _end_jobs(str(folder))
    said = [one.read_text() for one in folder.glob("log")]
    assert "Traceback" not in "".join(said)


def harmless(message: Any) -> bool:
    """Tell whether a message, should it be a start, touches nothing but the folder."""
    if not isinstance(message, dict) or message.get("v") != "start":
        return True
    argv = message.get("argv")
    first = argv[0] if isinstance(argv, list) and argv else None
    named = [message.get(name) for name in ("output", "stderr")]
    paths = [one for one in named if isinstance(one, str)]
    elsewhere = any(one.startswith("/") or ".." in one for one in paths)
    runs = isinstance(first, str) and "\0" not in first and shutil.which(first)
    return not elsewhere and (first == "true" or not runs)


@examples(120)
@given(data=st.data())
def test_a_keeper_answers_after_any_message(
    keeper: Daemon, data: st.DataObject
) -> None:
    seeds = verbs(keeper.directory)
    drawn = st.lists(st.one_of(slipped_values(seeds), st.sampled_from(seeds)))
    messages = [one for one in data.draw(drawn) if harmless(one)]
    lines = [json.dumps(one).encode() for one in messages]
    converse(keeper, b"\n".join(lines) + b"\n")


@examples(80)
@given(line=st.one_of(st.binary(max_size=200), slipped_bytes(LINES[2:])))
def test_a_keeper_answers_after_any_bytes(keeper: Daemon, line: bytes) -> None:
    converse(keeper, line + b"\n")


def converse(keeper: Daemon, data: bytes) -> None:
    """Say it on a connection of its own; whatever comes, the next one is greeted."""
    with bounded(2 * PATIENCE_S):
        channel = connect(str(keeper.directory))
        channel.settimeout(PATIENCE_S)
        channel.sendall(data)
        channel.shutdown(socket.SHUT_WR)
        while channel.recv(1 << 16):
            pass
        channel.close()
        Daemon(keeper.directory).close()


def test_a_line_without_an_end_is_cut_off(keeper: Daemon) -> None:
    channel = connect(str(keeper.directory))
    channel.settimeout(PATIENCE_S)
    piece = b"x" * (1 << 20)
    with bounded(30), pytest.raises((BrokenPipeError, ConnectionResetError)):
        channel.sendall(piece * 100)
    channel.close()
    Daemon(keeper.directory).close()


@pytest.mark.parametrize("depth", [500, 5_000, 100_000])
def test_a_message_that_is_nested_deep_is_refused(keeper: Daemon, depth: int) -> None:
    for text in (
        "[" * depth,
        '{"v":' * depth,
        '{"v":"x","id":' + "[" * depth + "]" * depth + "}",
    ):
        converse(keeper, text.encode() + b"\n")
