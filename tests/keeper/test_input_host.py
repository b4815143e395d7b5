"""The host of a job that is given input, without a keeper: it ends as its program."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.keeper import input_host
from grass.keeper.input_pieces import LARGEST_PIECE, MOST_PENDING, Piece, Taken
from tests.support.patience import PATIENCE_S, until

HOST = (sys.executable, "-I", "-S", input_host.__file__)
ENVIRONMENT = {"PATH": os.environ["PATH"], "MINE": "ä", "LC_ALL": "C"}


class Hosted:
    """A program under its host."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "input"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, kind: str, script: str) -> "Hosted":
        words = ("24", "80", "/bin/bash", "bash", "--norc", "-c", script)
        self.process = subprocess.Popen(
            [*HOST, str(self.socket), kind, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        return self

    def connect(self) -> socket.socket:
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(PATIENCE_S)

        def connected() -> bool:
            try:
                channel.connect(str(self.socket))
            except OSError:
                return False
            return True

        until(connected, "the host never listened")
        return channel

    def send(self, data: bytes = b"", offset: int = 0, **more: object) -> Taken:
        piece = Piece("me", offset, len(data))._replace(**more)  # type: ignore[arg-type]
        with self.connect() as channel:
            channel.sendall(piece.header() + data)
            return Taken(*json.loads(channel.recv(1000)))

    def end(self) -> tuple[int, bytes]:
        assert self.process is not None
        printed, _ = self.process.communicate(timeout=PATIENCE_S)
        assert not self.socket.exists()
        return self.process.returncode, printed

    def reads(self, text: bytes) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        seen = b""
        while text not in seen:
            piece = os.read(self.process.stdout.fileno(), 65536)
            assert piece, seen
            seen += piece


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    one = Hosted(tmp_path)
    yield one
    if one.process is not None and one.process.poll() is None:
        os.killpg(one.process.pid, signal.SIGKILL)
        one.process.communicate()


@pytest.mark.parametrize("kind", ["pipe", "pty"])
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -TERM $$", -15),
        ("kill -KILL $$", -9),
        ("ulimit -c 0; kill -SEGV $$", -11),
    ],
)
def test_it_ends_as_its_program_does(
    hosted: Hosted, kind: str, script: str, code: int
) -> None:
    returned, printed = hosted.start(kind, f"echo last words; {script}").end()
    assert (returned, printed.split()) == (code, [b"last", b"words"])


@pytest.mark.parametrize("kind", ["pipe", "pty"])
def test_the_program_has_the_environment_that_was_given(
    hosted: Hosted, kind: str
) -> None:
    _, printed = hosted.start(kind, "exec env").end()
    names = {line.partition(b"=")[0] for line in printed.splitlines()}
    assert names - {b"PWD", b"SHLVL", b"_", b"OLDPWD"} == {
        *(name.encode() for name in ENVIRONMENT)
    }
    assert "MINE=ä".encode() in printed


def test_a_piece_that_is_sent_again_is_not_taken_twice(hosted: Hosted) -> None:
    hosted.start("pipe", "cat")
    assert hosted.send(b"one ") == (4, False)
    assert hosted.send(b"one ") == (4, False)
    assert hosted.send(b"one two ") == (8, False)
    assert hosted.send(b"lost", offset=50) == (8, False)
    assert hosted.send(b"other ", sender="another") == (6, False)
    assert hosted.send(b"end", offset=8, end=True) == (11, True)
    assert hosted.end() == (0, b"one two other end")


def test_input_after_the_end_is_dropped(hosted: Hosted) -> None:
    hosted.start("pipe", "cat; read x < /proc/$PPID/stat; exec sleep 1000")
    assert hosted.send(b"one", end=True) == (3, True)
    assert hosted.send(b"one two") == (7, True)


def test_input_that_is_not_read_holds_its_sender_up(
    hosted: Hosted, tmp_path: Path
) -> None:
    os.mkfifo(gate := tmp_path / "gate")
    hosted.start("pipe", f"read x < {gate}; wc -c")
    taken, piece = 0, b"x" * 60_000
    while (now := hosted.send(piece, offset=taken).offset) - taken == len(piece):
        taken = now
    # What fits into a pipe was taken, too.
    assert MOST_PENDING <= now <= MOST_PENDING + LARGEST_PIECE
    with hosted.connect() as channel:
        channel.sendall(Piece("me", now, 1, True).header() + b"x")
        gate.write_text("go\n")
        assert json.loads(channel.recv(1000)) == [now + 1, True]
    assert hosted.end() == (0, b"%d\n" % (now + 1))


@pytest.mark.parametrize(
    "garbage",
    [
        b"\n",
        b"[]\n",
        b'["a"]\n',
        b'["a", 0, 99999999]\n',
        b'["a", -5, 1]\nx',
        b'["a", 0, -1]\n',
        b'["a", 0, "x"]\n',
        b"x" * 5000,
        b"\xff\xfe\n",
        b"",
    ],
)
def test_garbage_on_its_socket_does_no_harm(hosted: Hosted, garbage: bytes) -> None:
    hosted.start("pipe", "cat")
    with hosted.connect() as channel:
        channel.sendall(garbage)
        channel.shutdown(socket.SHUT_WR)
        assert channel.recv(1000) == b""
    hosted.send(b"fine", end=True)
    assert hosted.end() == (0, b"fine")


def test_a_program_that_closes_its_stdin_takes_no_more(hosted: Hosted) -> None:
    hosted.start("pipe", "exec 0<&-; echo closed; exec sleep 1000")
    hosted.reads(b"closed")
    hosted.send(b"x")
    assert hosted.send(b"y", offset=1).closed


def test_it_outlives_signals_that_its_program_survives(hosted: Hosted) -> None:
    hosted.start("pipe", "trap 'echo got it' USR1; trap '' TERM; echo up; cat")
    hosted.reads(b"up")
    assert hosted.process is not None
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        hosted.process.send_signal(number)
    hosted.send(b"still here", end=True)
    assert hosted.end() == (0, b"still here")


def test_a_shell_that_ignores_sigterm_is_hung_up(hosted: Hosted) -> None:
    hosted.start("pty", "PS1=prompt: exec bash --norc -i")
    hosted.reads(b"prompt:")
    assert hosted.process is not None
    host = hosted.process.pid
    (shell,) = Path(f"/proc/{host}/task/{host}/children").read_text().split()
    until(lambda: input_host._ignores_sigterm(int(shell)), "bash ends on SIGTERM")
    hosted.process.terminate()
    assert hosted.end()[0] == -signal.SIGHUP


def test_a_shell_that_misses_a_signal_is_hung_up_again(hosted: Hosted) -> None:
    line = (
        "trap '' TERM; trap 'trap - HUP' HUP; echo ready; while :; do sleep 0.1; done"
    )
    hosted.start("pty", line)
    hosted.reads(b"ready")
    assert hosted.process is not None
    hosted.process.terminate()
    assert hosted.end()[0] == -signal.SIGHUP


def test_a_terminal_has_a_size_that_changes(hosted: Hosted) -> None:
    hosted.start("pty", "stty size; read x; stty size")
    hosted.reads(b"24 80")
    hosted.send(window=(30, 99))
    hosted.send(b"\n")
    code, printed = hosted.end()
    assert (code, b"30 99" in printed) == (0, True)


def test_its_socket_is_for_the_user_alone(hosted: Hosted) -> None:
    hosted.start("pipe", "cat")
    hosted.connect().close()
    assert hosted.socket.stat().st_mode & 0o777 == 0o600
    hosted.send(end=True)
    hosted.end()
