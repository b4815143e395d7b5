"""Words on the command line: an exit code that the pages know, never a traceback.

The commands run within the test, and what they ask for goes straight into the API of a
real broker; only the socket between the two is left out.
"""

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.cli.main import COMMANDS, command, dispatch
from grass.client import autostart, tls_connection
from grass.client.json_codec import decoded, encoded
from grass.errors import GrassError, TimedOut, error_classes
from tests.fuzz.dose import bounded, examples
from tests.fuzz.garbage import any_text, slipped
from tests.fuzz.serving import Served

DOCUMENTED = {0, *(one.exit_code for one in error_classes().values()), 124, 125, 130}
"""Those of `docs/reference/exit-codes.md`; no job runs here that had its own."""
SEEDS = (
    *("1", "1-3", "last", "all", "@p", "name~a", "state:held", "queue:default"),
    *("default", "q", "{cpu:1}", "{gpu:2}", "0.5", "8G", "10m", "1:00:00", "22:00"),
    *("+2h", "2030-01-31T08:00", "1-9%2", "1:any", "A=b", "true", "echo {index}"),
    *("cpu:0", "json", "id,state", "-id", "5", "--", "-", "bash", "add", "show", ""),
)
NO_WORDS = -1
LOOKS_ON = ("--watch", "-w")
"""These end by an interrupt only."""


def options_of(name: str) -> list[str]:
    """Give every option of a command, hidden ones too."""
    options = command(name).options
    named = [one for option in options for one in option.names]
    return [one for one in named if one not in LOOKS_ON] or ["--json"]


def typed(text: str) -> str:
    """Leave out what no shell can pass on."""
    kept = text.replace("\0", "").encode("utf-8", "surrogatepass")
    return kept.decode("utf-8", "surrogateescape")


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Give a command with options and words, some of which make sense."""
    name = draw(st.sampled_from(sorted(COMMANDS)))
    word = st.one_of(
        st.sampled_from(options_of(name)),
        st.sampled_from(SEEDS),
        slipped(SEEDS),
        st.builds(
            "{}={}".format, st.sampled_from(options_of(name)), st.sampled_from(SEEDS)
        ),
        any_text,
        st.binary(max_size=8).map(lambda data: data.decode("utf-8", "surrogateescape")),
    )
    words = [typed(one) for one in draw(st.lists(word, max_size=6))]
    return [name, *(one for one in words if not one.startswith(LOOKS_ON))]


class Line:
    """What a command takes for its connection."""

    def __init__(self, served: Served) -> None:
        self.headers: dict[str, str] = {}
        self._served = served

    def exchange(
        self, method: str, path: str, body: object = None, *, may_last: bool = False
    ) -> Any:
        answer = self._asked(method, path, body)
        return decoded(answer or b"null")

    def stream(self, method: str, path: str, body: object = None) -> Iterator[bytes]:
        return iter([self._asked(method, path, body)])

    def is_ready(self) -> bool:
        return True

    def watch(self, open_another: object) -> None:
        pass

    def ask_this_daemon(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _asked(self, method: str, path: str, body: object) -> bytes:
        data = b"" if body is None else encoded(body)
        answer = self._served.ask(method, path, data)
        if answer is None:
            raise TimedOut("nothing happens here")
        if answer.status == 200:
            return answer.body
        problem = answer.document
        assert problem["code"] != GrassError.code, problem
        assert problem["code"] != "storage", problem
        raise error_classes()[problem["code"]](problem["detail"], problem["hint"])


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """Connect every command to one broker, in a folder of its own."""
    folder = tmp_path_factory.mktemp("desk")
    served = Served(folder)
    fake = Line(served)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setenv("GRASS_HOME", str(folder))
        patched.setenv("EDITOR", "true")
        for name in ("connect", "connect_running"):
            patched.setattr(autostart, name, lambda _home: fake)
        # Brokers elsewhere are this one too: what is typed must not be dialled.
        for name in ("open_broker", "open_joined", "_open_first"):
            patched.setattr(tls_connection, name, lambda *_where: fake)
        started = (fake, False)
        for module in ("start", "stop"):
            whole = f"grass.cli.commands.{module}.start"
            patched.setattr(whole, lambda *_home, **_how: started)
        patched.setattr("grass.cli.commands.daemon._detach", lambda _ready: None)
        patched.setattr("grass.daemon.run_daemon.run_daemon", lambda *_home, **_how: 0)
        yield fake
    assert served.is_well()
    served.close()


class Said(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


def said(words: list[str]) -> Said:
    """Run a command as `main` does, its output kept."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    stdin = io.TextIOWrapper(io.BytesIO(b"true\n"), "utf-8")
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr(sys, "stdin", stdin)
        try:
            code = dispatch(words)
        except OSError as error:
            # `main` prints what the system says, and that must be something.
            code = GrassError.exit_code if error.strerror else NO_WORDS
        out.flush()
        err.flush()
    written = [stream.detach().getvalue().decode() for stream in (out, err)]
    return Said(code, *written)


@examples(350)
@given(words=lines())
def test_any_words_end_in_a_known_exit_code(line: Line, words: list[str]) -> None:
    with bounded(15):
        ran = said(words)
    assert ran.code in DOCUMENTED, ran
    assert "Traceback" not in ran.err
    assert ran.code == 0 or ran.err


@examples(100)
@given(words=st.lists(st.one_of(any_text, st.sampled_from(sorted(COMMANDS)))))
def test_words_without_a_command_are_refused(line: Line, words: list[str]) -> None:
    words = [typed(one) for one in words if one not in COMMANDS]
    with bounded(15):
        ran = said(words)
    assert ran.code in (0, 2)


@examples(150)
@given(
    text=slipped(
        [
            "true\necho a b\n",
            '{"command": "true", "require": {"cpu": 1}, "env": {"A": "b"}}\n',
            '{"command": ["a"], "array": "1-3"}\n# x\n\n{"command": "b"}\n',
        ]
    ),
    options=st.lists(st.sampled_from(["--hold", "-c1", "--raw"]), max_size=2),
)
def test_any_file_of_jobs_is_taken_or_refused(
    line: Line, tmp_path_factory: pytest.TempPathFactory, text: str, options: list[str]
) -> None:
    file = Path("jobs")
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with bounded(15):
        ran = said(["enqueue", *options, "--from", str(file)])
    assert ran.code in DOCUMENTED, ran
    assert ran.code == 0 or ran.err.startswith("grass")
