"""Bad input: one clear line, the right exit code, and nothing changed."""

from collections.abc import Iterator

import pytest

from tests.support.homes import Document, GrassHome

pytestmark = pytest.mark.daemon


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    home = GrassHome(tmp_path_factory.mktemp("bad-input"))
    home.ok("create-queue", "q1", "--json", "{gpu:4}")
    home.ok("create-queue", "print", "--json", "{printer:1}", "echo")
    home.ok("pause")
    home.enqueue("q1", "-g", "1", "--", "true")
    yield home
    home.end()


def everything(home: GrassHome) -> Document:
    """Return all that a refused command must leave as it is."""
    shown = home.client.overview()
    shown["daemon"].pop("pid")
    for job in shown["jobs"]:
        job.pop("reason")
    return shown


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["enqueue", "q1", "--json", "{gpu:-1}", "--", "true"], 2, "negative"),
        (["enqueue", "q1", "--json", "{gpu:NaN}", "--", "true"], 2, "not nan"),
        (["enqueue", "q1", "--json", "{gpu:1e30}", "--", "true"], 2, "no machine"),
        (["enqueue", "q1", "--json", "{gpu:Infinity}", "--", "true"], 2, "number"),
        (["enqueue", "q1", "--json", "{gpu:'1'}", "--", "true"], 2, "number"),
        (["enqueue", "q1", "--json", "{gpu:true}", "--", "true"], 2, "number"),
        (["enqueue", "q1", "--json", "[1]", "--", "true"], 2, "object"),
        (["enqueue", "q1", "--json", "{'a b':1}", "--", "true"], 2, "a b"),
        (["enqueue", "q1", "--json", "{home:1}", "--", "true"], 2, "reserved"),
        (["enqueue", "q1", "-g", "1", "--json", "{gpu:1}", "--", "true"], 2, "twice"),
        (["enqueue", "q1", "-g", "many", "--", "true"], 2, "many"),
        (["enqueue", "q1", "-m", "8X", "--", "true"], 2, "8X"),
        (["enqueue", "q1", "-g", "5", "--", "true"], 6, "5"),
        (["enqueue", "--", "echo", "{gpu}"], 2, "asks for no gpu"),
        (["enqueue", "nosuch", "--", "true"], 4, "no queue `nosuch`"),
        (["enqueue", "--queue", "nosuch", "--", "true"], 4, "nosuch"),
        (["enqueue", "nosuchprogram", "x"], 4, "no queue or program `nosuchprogram`"),
        (["enqueue"], 2, "no command"),
        (["enqueue", "--"], 2, "no command"),
        (["enqueue", "q1"], 2, "no command"),
        (["enqueue", "q1", "--", "X=1"], 2, "no command"),
        (["enqueue", "--", ""], 2, "no command"),
        (["enqueue", "--cwd", "/no/such/dir", "--", "true"], 2, "/no/such/dir"),
        (["enqueue", "--env", "=x", "--", "true"], 2, "no name"),
        (["enqueue", "--env", "NOT_SET_ANYWHERE", "--", "true"], 2, "NOT_SET_ANYWHERE"),
        (["enqueue", "--priority", "high", "--", "true"], 2, "whole number"),
        (["enqueue", "--priority", "99999999999", "--", "true"], 2, "out of range"),
        (["enqueue", "--max-output", "lots", "--", "true"], 2, "lots"),
        (["enqueue", "--project", "a/b", "--", "true"], 2, "a/b"),
        (["enqueue", "--requir", "{}", "--", "true"], 2, "no option `--requir`"),
        (["enqueue", "--format", "xml", "--", "true"], 2, "xml"),
        (["enqueue", "--require"], 2, "needs a value"),
        (["enqueue", "--from", "/no/such/file"], 2, "/no/such/file"),
        (["enqueue", "--from", "/dev/null"], 2, "no jobs"),
        (["create-queue"], 2, "name is missing"),
        (["create-queue", "q1", "--json", "{gpu:3}"], 5, "another capacity"),
        (["create-queue", "q1", "--json", "{gpu:4}", "echo"], 5, "another command"),
        (["create-queue", "default"], 5, "always exists"),
        (["create-queue", "a b"], 2, "a b"),
        (["create-queue", "q9", "--json", "{gpu:-1}"], 2, "-1"),
        (["create-queue", "q9", "--json", "{gpu:0.5}"], 2, "{gpu:[0.5]}"),
        (["create-queue", "q9", "--json", "{gpu:100000}"], 2, "100000"),
        (["create-queue", "q9", "--json", "{gpu:[0]}"], 2, "0"),
        (["create-queue", "q9", "--json", "{gpu:{'a b':1}}"], 2, "a b"),
        (["create-queue", "q9", "--max-running", "0"], 2, "at least 1"),
        (["create-queue", "q9", "--file", "/no/such"], 2, "/no/such"),
        (["create-queue", "q9", "--default-require", "{gpu:x}"], 2, "column"),
        (["delete-queue", "q1"], 5, "1 unfinished job"),
        (["delete-queue", "default"], 5, "default"),
        (["delete-queue", "nosuch"], 4, "nosuch"),
        (["show", "nosuch"], 4, "nosuch"),
        (["logs", "99"], 4, "no job 99"),
        (["logs", "1"], 4, "not started"),
        (["logs"], 2, "missing"),
        (["cancel"], 2, "no job was named"),
        (["cancel", "99"], 4, "no job 99"),
        (["cancel", "sevn"], 2, "sevn"),
        (["cancel", "9-3"], 2, "9-3"),
        (["cancel", "name~("], 2, "name~("),
        (["cancel", "state:tired"], 2, "tired"),
        (["cancel", "--grace", "soon", "1"], 2, "soon"),
        (["wait", "99"], 124, "no job 99"),
        (["wait", "98", "99"], 4, "no job 98"),
        (["wait"], 2, "no job was named"),
        (["pause", "nosuch"], 4, "nosuch"),
        (["prune", "--older", "-1d"], 2, "-1d"),
        (["stop", "now"], 2, "now"),
        (["shwo"], 2, "did you mean `grass show`?"),
        (["--frobnicate"], 2, "--frobnicate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_is_refused_in_one_line(
    home: GrassHome, words: list[str], code: int, said: str
) -> None:
    before = everything(home)
    ran = home.run(*words)
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr
    place, *drawing = ran.stderr.splitlines()
    assert place.startswith("grass")
    if "column" not in place:
        assert drawing == []
    assert ran.stdout == ""
    assert everything(home) == before


@pytest.mark.parametrize(
    ("text", "place", "marked"),
    [
        ("{gpu:", "line 1, column 1", "{"),
        ("{gpu:1,,}", "line 1, column 8", ","),
        ("{gpu:1}}", "line 1, column 8", "}"),
        ("{gpu:1,\n gpu:2}", "line 2, column 2", "g"),
        ("{'gpu':1,gpu:2}", "line 1, column 10", "g"),
        ("{gpu:1e400}", "line 1", None),
    ],
)
def test_broken_json5_is_pointed_at(
    home: GrassHome, text: str, place: str, marked: str | None
) -> None:
    before = everything(home)
    for words in (
        ("enqueue", "q1", "--require", text, "--", "true"),
        ("create-queue", "q9", "--json", text),
    ):
        ran = home.run(*words)
        assert ran.returncode == 2, ran.stderr
        if marked is None:
            assert "gpu" in ran.stderr
            continue
        first, line, caret = ran.stderr.splitlines()
        assert place in first
        assert line[len(caret) - 1 :][:1] == marked
    assert everything(home) == before


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"command":"true"}\n{"command":\n', "stdin, line 2: Expecting"),
        (
            '{"command":"true"}\n{"commnd":"true"}\n',
            'line 2: field "commnd": there is no such field (did you mean "command"?)',
        ),
        (
            '{"command":"true"}\n\n{"command":"true","require":"{gpu:9}"}\n',
            'stdin, line 3: field "require": ',
        ),
        (
            '{"command":"true","cwd":"/no/such"}\n',
            'stdin, line 1: field "cwd": there is no directory',
        ),
        (
            '{"command":"true","time_limit":3}\n',
            'line 1: field "time_limit": there is no such field (did you mean "time_',
        ),
        (
            '{"command":"true","retries":"x"}\n',
            'stdin, line 1: field "retries": Expected `int',
        ),
        (
            '{"command":"true","retries":-1}\n',
            'stdin, line 1: field "retries": --retries is -1',
        ),
        (
            '{"command":"true"}\n{"command":"true","queue":"no"}\n',
            'stdin, line 2: field "queue": there is no queue',
        ),
        (
            '{"command":"true","worker":"no"}\n',
            'stdin, line 1: field "worker": there is no worker',
        ),
        (
            '{"command":"true","env":{"A":"{gpu}"}}\n',
            'stdin, line 1: field "env": `{gpu}` is used',
        ),
        ('{"command":"{gpu}"}\n', 'stdin, line 1: field "command": `{gpu}` is used'),
        ("true\necho \\\n {gpu}\n", "stdin, line 2: `{gpu}` is used"),
    ],
)
def test_one_bad_line_of_a_file_adds_no_job(
    home: GrassHome, lines: str, said: str
) -> None:
    before = everything(home)
    ran = home.run("enqueue", "--from", "-", input=lines)
    assert ran.returncode in (2, 4, 6)
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert everything(home) == before


def test_a_removed_directory_is_named(home: GrassHome) -> None:
    line = "mkdir gone && cd gone && rmdir ../gone && grass enqueue -- true"
    ran = home.shell(line)
    assert ran.returncode == 2
    assert "does not exist any more" in ran.stderr
