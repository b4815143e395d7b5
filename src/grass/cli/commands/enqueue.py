"""`grass enqueue`: add a job, an array, or many from a file, and print the ids.

`grass run` reads its words in the same way:

    enqueue [OPTIONS] [QUEUE] [OPTIONS] [--] COMMAND...

Words before `--` name the queue. Without `--`, a first word that is a queue's name is
the queue, otherwise it must be a program that the caller can find: a misspelled queue
must not become a job that fails. After a queue with a prefix no word is an option.
"""

from __future__ import annotations

import os
import sys

from grass.cli.parsing import job_options
from grass.cli.parsing.job_options import check_paths, settings
from grass.cli.parsing.options import BROKER, Command, HelpWanted, Option, Values, scan
from grass.client.client import Client
from grass.errors import NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grass.client.json_codec import Document

    FindPrefix = Callable[[str], list[str] | None]
    """Returns a queue's prefix, empty when it has none; None when there is no queue."""
    Add = Callable[..., Document]
    """Adds jobs, or says what would be added."""

QUIET = Option("-q, --quiet", about="no hints on stderr")
OPTIONS = (
    *job_options.OPTIONS,
    Option("--array", "LIST", "one job for each index: 1-100, 0-90:10, 1-1000%8"),
    Option("--at-most", "N", "how many of the array, or of ::: values, run at a time"),
    Option("--max-fails", "N", "pause the queue when N of the array have failed"),
    Option(
        "--from",
        "FILE",
        "one job for each line: shell lines or JSON objects; before a command, values "
        "for its {} or {1} {2}",
    ),
    BROKER,
    QUIET,
    Option("--dry-run", about="say what would be enqueued; enqueue nothing"),
    Option("--format", "text|json", "what to print (default: text)"),
)
_FEW = 1000


class EnqueueLine:
    """The words of `enqueue` or `run`: options, queue and command.

    The options before the first plain word are read at once, as they name the broker.
    Its queues decide how the rest is read: `find_queue` does that.
    """

    def __init__(self, options: Sequence[Option], words: Sequence[str]) -> None:
        self.values = Values()
        self.queue: str | None = None
        self.command: list[str] = []
        self._options = options
        self._words = list(words)
        self._at = scan(options, words, 0, self.values)
        if self.values.text("require") == "--":
            raise UsageError(
                "--json takes a request here, as --require does",
                "to print JSON write --format json",
            )

    def find_queue(self, find_prefix: FindPrefix) -> None:
        """Set queue and command; ask for a queue only where a word may be one."""
        broker = self.values.broker
        rest = self._words[self._at :]
        if self.values.has("queue"):
            self._read_after_queue_option(rest, find_prefix)
        elif not rest or rest[0] == "--":
            self.command = [*rest[1:]]
        else:
            self._read_from_first_word(rest[0], find_prefix)
        if self.values.broker != broker:
            raise UsageError(
                "--broker comes too late", "write it before the queue's name"
            )

    def _read_after_queue_option(
        self, rest: Sequence[str], find_prefix: FindPrefix
    ) -> None:
        queue = self.queue = self.values.text("queue") or ""
        if rest and rest[0] != "--":
            if rest[1:2] == ["--"]:
                raise UsageError(f"two queues: `{queue}` and `{rest[0]}`")
            if not find_prefix(queue):
                self._check_command(rest)
        self.command = _after_dashes(rest)

    def _read_from_first_word(self, word: str, find_prefix: FindPrefix) -> None:
        prefix = find_prefix(word) if _may_be_queue(word) else None
        if prefix is None:
            self._read_command(word)
            return
        self.queue = word
        self._at += 1
        if not prefix:
            self._at = scan(self._options, self._words, self._at, self.values)
            if self.values.has("queue") and self.values.text("queue") != word:
                other = self.values.text("queue")
                raise UsageError(f"two queues: `{word}` and `{other}`")
        self.command = _after_dashes(self._words[self._at :])

    def _read_command(self, word: str) -> None:
        if self._dashes_follow():
            raise NotFound(
                f"there is no queue `{word}`",
                f"for a program of that name write `--` before it: -- {word} ...",
            )
        self.command = [*self._words[self._at :]]
        self._check_command(self.command)

    def _dashes_follow(self) -> bool:
        try:
            end = scan(self._options, self._words, self._at + 1, Values())
        except (UsageError, HelpWanted):
            return False
        return self._words[end : end + 1] == ["--"]

    def _check_command(self, words: Sequence[str]) -> None:
        words = _before_values(words)
        if not _is_command(words, self.values.text("cwd")):
            raise _not_found(_program(words))


def run(words: list[str]) -> int:
    """Enqueue what the words say."""
    line = EnqueueLine(OPTIONS, words)
    with Client(broker=line.values.broker) as client:
        find_queue(client, line)
        style = output_format(line.values)
        reply = _enqueue(client, line)
    give_hint(reply, line.values)
    if line.values.has("dry_run"):
        sys.stdout.write(_planned(reply, style))
    else:
        sys.stdout.write(_printed(reply, style))
    return 0


def _enqueue(client: Client, line: EnqueueLine) -> Document:
    source = line.values.text("from")
    if not line.values.has("raw") and any(map(_is_mark, line.command)):
        return _enqueue_combinations(client, line)
    if source is None:
        return enqueue_line(client, line)
    if line.values.has("array"):
        raise UsageError("--array and --from both say how many jobs", "give one")
    if line.command:
        return _enqueue_values(client, line, source)
    return _enqueue_file(client, line, source)


def _enqueue_combinations(client: Client, line: EnqueueLine) -> Document:
    from grass.cli.parsing import combinations

    for option in ("array", "from"):
        if line.values.has(option):
            raise UsageError(f"--{option} and ::: both say how many jobs", "give one")
    line.command, params = combinations.split(line.command)
    with combinations.errors_by_row(lambda _: ""):
        return _enqueue_template(client, line, params)


def _enqueue_values(client: Client, line: EnqueueLine, source: str) -> Document:
    from grass.cli.parsing.combinations import errors_by_row
    from grass.cli.parsing.values_file import ValuesFile

    values = ValuesFile(source)
    with errors_by_row(values.place):
        return _enqueue_template(client, line, values.params)


def _enqueue_template(client: Client, line: EnqueueLine, params: Document) -> Document:
    """Add a job for each row of parameters."""
    from grass.cli.parsing.combinations import template

    defaults = settings(line.values, line.queue)
    check_paths(client, defaults)
    if not line.command and line.queue is None:
        raise UsageError("no command was given", "write it before :::")
    command = template(line.command, params, defaults)
    return _adding(client, line.values)([{"command": command}], defaults, params)


def _adding(client: Client, values: Values) -> Add:
    return client.plan_jobs if values.has("dry_run") else client.enqueue_jobs


def find_queue(client: Client, line: EnqueueLine) -> None:
    """Read the words after the first options, asking the daemon for queues."""
    line.find_queue(lambda name: _prefix(client, name))


def enqueue_line(
    client: Client, line: EnqueueLine, more: Document | None = None
) -> Document:
    """Add the jobs of one command; `more` goes before what its options say."""
    if not line.command and line.queue is None:
        raise UsageError("no command was given", "write it after --: -- python x.py")
    defaults = {**settings(line.values, line.queue), **(more or {})}
    check_paths(client, defaults)
    return _adding(client, line.values)([{"command": line.command}], defaults)


def give_hint(reply: Document, values: Values) -> None:
    """Print the daemon's hints, a line each, on stderr."""
    if reply["hint"] and not values.has("quiet"):
        for line in reply["hint"].split("\n"):
            sys.stderr.write(f"grass: {line}\n")


def output_format(values: Values) -> str:
    """Read `--format`."""
    style = values.text("format") or "text"
    if style not in ("text", "json"):
        raise UsageError(f"--format is text or json, not `{style}`")
    return style


def _prefix(client: Client, name: str) -> list[str] | None:
    try:
        prefix: list[str] = client.queue(name)["prefix"]
    except NotFound:
        return None
    return prefix


def _enqueue_file(client: Client, line: EnqueueLine, source: str) -> Document:
    from grass.cli.parsing.jobs_file import JobsFile

    defaults = settings(line.values, line.queue)
    file = JobsFile(source)
    check_paths(client, defaults)
    file.check(client, defaults)
    with file.errors_by_line():
        return _adding(client, line.values)(file.jobs, defaults)


def _printed(reply: Document, style: str) -> str:
    first, last = reply["first"], reply["last"]
    if style == "text":
        return f"{first}\n" if first == last else f"{first}-{last}\n"
    from grass.client.json_codec import encoded

    document = {"first": first, "last": last}
    if last - first < _FEW:
        document["ids"] = list(range(first, last + 1))
    document["hint"] = reply["hint"]
    return encoded(document).decode() + "\n"


def _planned(reply: Document, style: str) -> str:
    if style == "text":
        from grass.cli.printing import plan

        return plan.text(reply)
    from grass.client.json_codec import encoded

    return encoded(reply).decode() + "\n"


def _not_found(program: str) -> NotFound:
    hint = "`grass show` lists the queues; `--` before a command skips this check"
    if " " in program:
        hint = "a shell line is one word alone: put all of it into the quotes"
    return NotFound(f"no queue or program `{program}`", hint)


def _after_dashes(words: Sequence[str]) -> list[str]:
    return [*words[1:]] if words[:1] == ["--"] else [*words]


def _may_be_queue(word: str) -> bool:
    letters = word.replace("-", "").replace("_", "").replace(".", "")
    return word.isascii() and (letters.isalnum() or not letters) and word != ""


def _is_mark(word: str) -> bool:
    return word.startswith(":::")


def _before_values(words: Sequence[str]) -> Sequence[str]:
    at = next((at for at, word in enumerate(words) if _is_mark(word)), len(words))
    return words[:at] or words


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isascii() and name.isidentifier()


def _program(words: Sequence[str]) -> str:
    return next((word for word in words if not _is_assignment(word)), words[0])


def _is_command(words: Sequence[str], cwd: str | None) -> bool:
    program = _program(words)
    if _is_assignment(program):
        return False
    if any(letter.isspace() for letter in program) and len(words) == 1:
        return program.strip() != ""
    if os.path.exists(os.path.join(cwd or "", program)) or os.path.exists(program):
        return program != ""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return "/" not in program and any(
        os.access(os.path.join(folder, program), os.X_OK) for folder in folders
    )


COMMAND = Command(
    usage="[OPTIONS] [QUEUE] [OPTIONS] [--] COMMAND...",
    about=(
        "Add a job and print its id. Words before `--` name the queue; without `--`, a "
        "first word that is a queue's name is the queue. After a queue with a command "
        "prefix, every word is an argument of that prefix. Leading NAME=value words "
        "are environment; one word with spaces is a shell line. With --array there is "
        "one job for each index, which it finds as {index} and in GRASS_ARRAY_INDEX. "
        "With ::: after the command there is one for each combination of the values, "
        "which it finds as {1} {2} and in GRASS_PARAM_1: all are added, or none."
    ),
    options=OPTIONS,
    examples=(
        "grass enqueue python train.py",
        "grass enqueue -g 0.5 -m 8G -- python train.py lr=0.1",
        "grass enqueue q1 --env 'CUDA_VISIBLE_DEVICES={gpu}' -- python train.py",
        'grass enqueue "python a.py && python b.py"',
        "grass enqueue q1 --require '{gpu:1}' --from jobs.txt",
        "grass enqueue --array 1-100%8 -- python train.py seed={index}",
        "grass enqueue -- python train.py {1} {2} ::: 0.1 0.01 ::: 1 2 3",
        "grass enqueue --from values.txt --at-most 8 -- python train.py {}",
        "grass enqueue --dry-run --array 1-100 -- python train.py seed={index}",
        "grass enqueue --broker my.server.com:7500 --label a100 -- nvidia-smi",
        "grass enqueue --after 7 --time-limit 2h --retries 3 -- python test.py",
    ),
    run=run,
)
