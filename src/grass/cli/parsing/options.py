"""Options: what a command takes, and reading it from the words of a shell.

One small reader serves every command, because two of them have a grammar in which the
first plain word decides how the rest is read, and because it imports nothing. Options
are never abbreviated. `--name value`, `--name=value`, `-n value` and `-nvalue` are
understood; `--` ends the options. A value that may be left out is given with `=` only,
because the next word may be something else.
"""

from __future__ import annotations

from grass.client.json_codec import AnyOf
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Subcommand = Callable[["Values", list[str]], int]


class HelpWanted(Exception):
    """The user asked for the command's help."""


class Option:
    """One option; without a `value` it is a switch, `[VALUE]` may be left out."""

    def __init__(
        self, names: str, value: str = "", about: str = "", *, hidden: bool = False
    ) -> None:
        """Take the names as people read them: `-g, --gpu`."""
        self.names = names.split(", ")
        self.value = value.strip("[]")
        self.needs_value = value == self.value != ""
        self.about = about
        self.hidden = hidden
        self.key = self.names[-1].lstrip("-").replace("-", "_")


class Command:
    """A command: how it is called, what it does, what it takes."""

    def __init__(
        self,
        usage: str,
        about: str,
        options: Sequence[Option],
        examples: Sequence[str],
        run: Callable[[list[str]], int],
    ) -> None:
        """Describe the command; `run` gets the words after its name."""
        self.usage = usage
        self.about = about
        self.options = options
        self.examples = examples
        self.run = run


class Values:
    """The options that were given."""

    def __init__(self) -> None:
        self._given: dict[str, list[str]] = {}

    def add(self, option: Option, value: str) -> None:
        """Note that an option was given."""
        self._given.setdefault(option.key, []).append(value)

    def has(self, key: str) -> bool:
        """Tell whether an option was given."""
        return key in self._given

    def text(self, key: str) -> str | None:
        """Return an option's value; given twice, the last one counts."""
        values = self._given.get(key)
        return values[-1] if values else None

    def all(self, key: str) -> list[str]:
        """Return every value of an option that may be repeated."""
        return self._given.get(key, [])

    def followed_by(self, later: Values) -> Values:
        """Return these with others behind them, which win where one counts."""
        both = Values()
        for part in (self, later):
            for key, values in part._given.items():  # noqa: SLF001 -- its own class
                both._given.setdefault(key, []).extend(values)
        return both

    @property
    def broker(self) -> str | None:
        """The broker that was asked for; None is the usual one."""
        return self.text("broker")

    def whole_number(self, key: str) -> int | None:
        """Return an option's value as an integer."""
        text = self.text(key)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise UsageError(
                f"--{key.replace('_', '-')} must be a whole number, not `{text}`"
            ) from None


JSON = Option("--json", about="print one JSON document")
ANY = Option("--any", about="the jobs that any of the selectors means: a union")
"""An option of every command that takes several selectors."""
BROKER = Option(
    "--broker",
    "ADDRESS",
    "the broker to speak to, HOST:PORT or local (default: the joined one, else local)",
)
"""An option of every command that calls a broker: `Client(broker=values.broker)`."""


def scan(
    options: Sequence[Option], words: Sequence[str], at: int, values: Values
) -> int:
    """Read options from a position on; return that of the first other word, or `--`."""
    while at < len(words):
        word = words[at]
        if word in ("-", "--") or not word.startswith("-"):
            return at
        if word in ("-h", "--help"):
            raise HelpWanted
        at = _read_one(options, words, at, values)
    return at


def read(options: Sequence[Option], words: Sequence[str]) -> tuple[Values, list[str]]:
    """Read a command whose options may be anywhere before `--`."""
    values, plain = Values(), list[str]()
    at = 0
    while (at := scan(options, words, at, values)) < len(words):
        if words[at] == "--":
            plain += words[at + 1 :]
            break
        plain.append(words[at])
        at += 1
    return values, plain


def at_most(words: Sequence[str], most: int) -> None:
    """Refuse more words than a command takes."""
    if len(words) > most:
        raise UsageError(f"`{words[most]}` is one word too many")


def one_word(words: Sequence[str], what: str) -> str:
    """Return the only word that a command takes."""
    if not words:
        raise UsageError(f"{what} is missing")
    at_most(words, 1)
    return words[0]


def subcommand(
    command: str, known: Mapping[str, Subcommand], words: Sequence[str], default: str
) -> tuple[str, Subcommand]:
    """Return the subcommand that the first word names, and what runs it."""
    name = words[0] if words else default
    if name not in known:
        *others, last = known
        hint = f"it is {', '.join(others)} or {last}"
        raise UsageError(f"{command} knows no `{name}`", hint)
    return name, known[name]


def refuse_options_of(
    subcommand: str, options: Iterable[Option], values: Values
) -> None:
    """Refuse options that only another subcommand takes."""
    for option in options:
        if values.has(option.key):
            raise UsageError(f"{option.names[-1]} goes with `{subcommand}`")


def is_selector(word: str) -> bool:
    """Tell whether a word selects jobs; otherwise it may be a queue's name."""
    begins = word.startswith(("@", "name~", "state:", "queue:"))
    return begins or word in ("last", "all") or word[:1].isdecimal()


def chosen(values: Values, select: list[str]) -> list[str]:
    """Return selectors as a client takes them, with `--any` as their union."""
    return AnyOf(select) if values.has("any") else select


def is_one(word: str) -> bool:
    """Tell whether a selector can only mean one job."""
    return word.isdecimal() or word == "last"


def names_one(select: list[str]) -> bool:
    """Tell whether selectors can only mean one job."""
    return len(select) == 1 and is_one(select[0])


def _read_one(
    options: Sequence[Option], words: Sequence[str], at: int, values: Values
) -> int:
    word = words[at]
    name, equals, value = _split(word)
    option = _find(options, name, word)
    if equals and not option.value:
        raise UsageError(f"{name} takes no value")
    if equals or not option.needs_value:
        values.add(option, value)
        return at + 1
    if at + 1 == len(words):
        raise UsageError(f"{name} needs a value: {option.value}")
    values.add(option, words[at + 1])
    return at + 2


def _split(word: str) -> tuple[str, bool, str]:
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, bool(equals), value
    return word[:2], len(word) > 2, word[2:].removeprefix("=")


def _find(options: Sequence[Option], name: str, word: str) -> Option:
    for option in options:
        if name in option.names:
            return option
    raise UsageError(f"there is no option `{word}`", _nearest(options, name))


def _nearest(options: Sequence[Option], name: str) -> str:
    """Return a hint at the option that a misspelled one may mean."""
    from difflib import get_close_matches

    known = [one for option in options if not option.hidden for one in option.names]
    long = [one for one in known if one.startswith("--")]
    near = get_close_matches(name, long, 1, 0.7) if name.startswith("--") else []
    return f"did you mean `{near[0]}`?" if near else ""
