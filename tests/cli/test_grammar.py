"""The grammar of `enqueue` and `create-queue`: the examples of the documents."""

from pathlib import Path

import pytest

from grass.cli.commands import create_queue
from grass.cli.commands.enqueue import OPTIONS
from grass.cli.parsing.enqueue_line import EnqueueLine
from grass.cli.parsing.job_options import settings
from grass.cli.parsing.options import HelpWanted
from grass.errors import NotFound, UsageError

QUEUES: dict[str, list[str]] = {"q1": [], "job1": ["main.py", "arg1"], "print": ["lpr"]}


def read(*words: str) -> EnqueueLine:
    line = EnqueueLine(OPTIONS, words)
    line.find_queue(QUEUES.get)
    return line


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python", "git", "ls"):
        (folder / name).touch(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.chdir(tmp_path)


def test_words_after_a_queue_with_a_prefix_are_its_arguments() -> None:
    line = read(
        *("--require", "{gpu:1}", "--env", "CUDA_VISIBLE_DEVICES={gpu}"),
        *("job1", "arg2", "arg3"),
    )
    assert (line.queue, line.command) == ("job1", ["arg2", "arg3"])
    assert settings(line.values, line.queue) == {
        "queue": "job1",
        "require": "{gpu:1}",
        "env": {"CUDA_VISIBLE_DEVICES": "{gpu}"},
    }


def test_after_a_queue_with_a_prefix_nothing_is_an_option() -> None:
    line = read("print", "-g", "1", "A=b", "two words", "--help", "--", "x")
    assert line.command == ["-g", "1", "A=b", "two words", "--help", "--", "x"]
    assert not line.values.has("gpu")


def test_one_pair_of_dashes_after_a_queue_with_a_prefix_is_dropped() -> None:
    assert read("print", "--", "--", "paper.pdf").command == ["--", "paper.pdf"]


def test_options_may_stand_between_queue_and_command() -> None:
    line = read(
        *("q1", "--env", "CUDA_VISIBLE_DEVICES={gpu}", "--json", "{gpu:0.5}"),
        *("--", "python", "train.py", "lr=0.01"),
    )
    assert (line.queue, line.command) == ("q1", ["python", "train.py", "lr=0.01"])
    assert settings(line.values, "q1")["require"] == "{gpu:0.5}"


def test_assignments_after_the_dashes_belong_to_the_command() -> None:
    line = read(
        *("q1", "--json", "{gpu:0.5}", "--cwd=/", "--env=CUDA_VISIBLE_DEVICES={gpu}"),
        *("--", "CUDA_VISIBLE_DEVICES={gpu}", "python", "train.py", "lr=0.1"),
    )
    expected = ["CUDA_VISIBLE_DEVICES={gpu}", "python", "train.py", "lr=0.1"]
    assert line.command == expected
    assert settings(line.values, "q1")["cwd"] == "/"


def test_dashes_first_mean_the_default_queue() -> None:
    line = read(
        *("--require", "{gpu:0.5}", "--cwd=/", "--env=CUDA_VISIBLE_DEVICES={gpu}"),
        *("--", "python", "train.py", "lr=0.1", "batch_size=8"),
    )
    expected = ["python", "train.py", "lr=0.1", "batch_size=8"]
    assert (line.queue, line.command) == (None, expected)


def test_the_first_other_word_after_a_queue_begins_the_command() -> None:
    line = read(
        *("q1", "--env", "PYTHONPATH=..", "--env", "TERM=xterm", "--cwd", "/"),
        *("--json", "{gpu:0.5}", "python", "train.py", "--json", "x"),
    )
    assert (line.queue, line.command) == ("q1", ["python", "train.py", "--json", "x"])
    assert settings(line.values, "q1")["env"] == {"PYTHONPATH": "..", "TERM": "xterm"}


@pytest.mark.parametrize(
    "words",
    [
        ["python", "train.py"],
        ["git", "log", "--", "file"],
        ["python a.py && python b.py"],
        ["A=1", "B=2", "python", "x.py"],
        ["ls", "-la", "--help"],
        ["/bin/sh", "-c", "true"],
    ],
)
def test_a_program_without_a_queue_is_the_command(words: list[str]) -> None:
    line = read(*words)
    assert (line.queue, line.command) == (None, words)


def test_a_file_in_the_directory_is_a_program(tmp_path: Path) -> None:
    (tmp_path / "main.py").touch()
    assert read("main.py", "x").command == ["main.py", "x"]


def test_a_file_in_the_chosen_directory_is_a_program(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "main.py").touch()
    assert read("--cwd", "data", "main.py").command == ["main.py"]


@pytest.mark.parametrize("words", [["job2", "x"], ["A=1", "job2"], ["A=1"]])
def test_a_first_word_that_is_nothing_is_refused(words: list[str]) -> None:
    with pytest.raises(NotFound, match="no queue or program"):
        read(*words)


@pytest.mark.parametrize("words", [["q7", "-g", "1", "--", "ls"], ["ls", "--", "x"]])
def test_a_word_before_dashes_must_be_a_queue(words: list[str]) -> None:
    with pytest.raises(NotFound, match=f"there is no queue `{words[0]}`"):
        read(*words)


def test_a_queue_can_be_named_as_an_option() -> None:
    line = read("--queue", "print", "paper.pdf")
    assert (line.queue, line.command) == ("print", ["paper.pdf"])


def test_a_queue_is_asked_for_only_where_a_word_can_be_one() -> None:
    asked: list[str] = []

    def ask(name: str) -> list[str] | None:
        asked.append(name)
        return None

    for words in (["--", "ls"], ["a b"], ["/bin/sh"], ["A=1", "ls"], ["ls"]):
        EnqueueLine(OPTIONS, words).find_queue(ask)
    assert asked == ["ls"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--req", "{}", "--", "ls"], "no option `--req`"),
        (["--require"], "--require needs a value"),
        (["--raw=1", "--", "ls"], "--raw takes no value"),
        (["q1", "--nope", "ls"], "no option `--nope`"),
    ],
)
def test_a_wrong_option_is_named(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(*words)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("--time-limt", "did you mean `--time-limit`?"),
        ("--projct=a", "did you mean `--project`?"),
        ("--gpus", "did you mean `--gpu`?"),
        ("--zzz", ""),
        ("-z", ""),
    ],
)
def test_a_misspelled_option_gets_the_nearest_suggested(word: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(word, "1", "--", "ls")
    assert raised.value.hint == hint


def test_help_is_wanted_only_before_the_command() -> None:
    with pytest.raises(HelpWanted):
        read("q1", "--help")
    assert read("python", "--help").command == ["python", "--help"]


def test_short_options_make_a_request() -> None:
    line = read("-g", "0.5", "-c4", "-m", "8G", "--vram", "10G", "--", "ls")
    assert settings(line.values, None) == {
        "require_also": {"gpu": 0.5, "cpu": 4, "ram": "8G", "vram": "10G"}
    }


def test_short_options_add_to_a_request() -> None:
    line = read("--require", "{printer:1}", "-g", "1", "--", "ls")
    assert settings(line.values, None)["require"] == {"printer": 1, "gpu": 1}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-g", "one"], "--gpu must be a number"),
        (["-g", "nan"], "--gpu must be a number"),
        (["-c", "1e400"], "--cpu must be a number"),
        (["--require", "{gpu:1}", "-g", "1"], "gpu is asked for twice"),
        (["--env", "GRASS_TEST_NO_SUCH"], "no such variable"),
        (["--env", "=1"], "has no name"),
        (["--priority", "high"], "--priority must be a whole number"),
    ],
)
def test_a_wrong_value_is_named(words: list[str], message: str) -> None:
    line = read(*words, "--", "ls")
    with pytest.raises(UsageError, match=message):
        settings(line.values, None)


def test_paths_are_made_absolute(tmp_path: Path) -> None:
    line = read("--cwd", "{name}", "--output", "out/{id}.log", "--", "ls")
    fields = settings(line.values, None)
    assert fields["cwd"] == str(tmp_path / "{name}")
    assert fields["output"] == str(tmp_path / "out/{id}.log")


@pytest.mark.parametrize(
    ("words", "name", "prefix", "capacity"),
    [
        (["q1", "--json", "{gpu:4,cpu:16}"], "q1", [], "{gpu:4,cpu:16}"),
        (
            ["job1", "--capacity", "{gpu:4,cpu:16}", "main.py", "arg1"],
            "job1",
            ["main.py", "arg1"],
            "{gpu:4,cpu:16}",
        ),
        (
            ["--capacity", "{printer:1}", "print", "lpr"],
            "print",
            ["lpr"],
            "{printer:1}",
        ),
        (["q", "ls", "-l", "--file", "x"], "q", ["ls", "-l", "--file", "x"], None),
        (["q", "--", "--file"], "q", ["--file"], None),
    ],
)
def test_create_queue_reads_name_and_prefix(
    words: list[str], name: str, prefix: list[str], capacity: str | None
) -> None:
    values, read_name, read_prefix = create_queue.read_words(
        create_queue.OPTIONS, words
    )
    assert (read_name, read_prefix) == (name, prefix)
    assert values.text("capacity") == capacity


def test_create_queue_reads_limits_and_a_file() -> None:
    values, name, prefix = create_queue.read_words(
        create_queue.OPTIONS,
        [
            *("q2", "--file", "capacity.json5", "--default-require", "{gpu:1}"),
            *("--max-running", "2", "--max-fails", "5"),
        ],
    )
    assert (name, prefix, values.text("file")) == ("q2", [], "capacity.json5")
    assert values.text("default_require") == "{gpu:1}"
    assert values.whole_number("max_running") == 2
    assert values.whole_number("max_fails") == 5
