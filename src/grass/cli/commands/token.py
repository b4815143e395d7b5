"""`grass token`: make lines to join with, list tokens, and revoke them."""

from __future__ import annotations

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
from grass.cli.printing.streams import print_document, say, warn
from grass.client.client import Client
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from grass.client.json_codec import Document

NEW = (
    Option(
        "--role",
        "machine|worker|submit|operate|read|admin",
        "what a machine that joins may do (default: machine; with --login: read)",
    ),
    Option("--login", about="print a token that a browser logs in to `grass web` with"),
    Option("--name", "NAME", "what to call it in `list` (default: code)"),
    Option("--hours", "HOURS", "how long the line counts (default: 1)"),
)
OPTIONS = (*NEW, BROKER, JSON)
MOST_HOURS = 100_000
HEADER = ("NAME", "ROLE", "KIND", "WORKER", "MADE", "USED", "EXPIRES")


def run(words: list[str]) -> int:
    """Run the subcommand that the first word names."""
    values, rest = read(OPTIONS, words)
    known = {"new": _new, "list": _list, "revoke": _revoke}
    name, handler = subcommand("token", known, rest, default="list")
    if name != "new":
        refuse_options_of("token new", NEW, values)
    return handler(values, rest[1:])


def _new(values: Values, rest: list[str]) -> int:
    at_most(rest, 0)
    if values.has("login"):
        return _new_login(values)
    with Client(broker=values.broker) as client:
        made = client.new_token(
            role=values.text("role"), name=_name(values), hours=_hours(values)
        )
        tcp = client.overview()["daemon"]["tcp"]
    line = f"grass join {tcp['address']}/{tcp['pin']}/{made['code']}"
    if values.has("json"):
        print_document({**made, "line": line})
        return 0
    from grass.cli.printing.quantities import local

    warn(
        f"a machine that gets this line joins with the role `{made['role']}`, until"
        f" {local(made['expires_at'])}"
    )
    say(line)
    return 0


def _new_login(values: Values) -> int:
    """Print a token itself, which is valid until it is revoked or expires."""
    with Client(broker=values.broker) as client:
        made = client.new_token(
            role=values.text("role") or "read",
            name=_name(values),
            hours=_hours(values),
            code=False,
        )
    if values.has("json"):
        print_document(made)
        return 0
    warn(
        f"a browser that logs in with this token may do what the role"
        f" `{made['role']}` may; `grass token revoke {made['name']}` ends that"
    )
    say(made["token"])
    return 0


def _name(values: Values) -> str | None:
    from grass.model.access import is_start_name, no_start_name

    name = values.text("name")
    if name is not None and is_start_name(name):
        raise no_start_name(name)
    return name


def _hours(values: Values) -> float | None:
    text = values.text("hours")
    if text is None:
        return None
    try:
        hours = float(text)
    except ValueError:
        raise UsageError(f"--hours must be a number, not `{text}`") from None
    if not 0 < hours <= MOST_HOURS:
        raise UsageError(
            f"--hours is {text}", f"give more than 0 and at most {MOST_HOURS}"
        )
    return hours


def _list(values: Values, rest: list[str]) -> int:
    at_most(rest, 0)
    with Client(broker=values.broker) as client:
        document = client.tokens()
    if values.has("json"):
        print_document(document)
        return 0
    from grass.cli.printing.quantities import utc_now
    from grass.cli.printing.table import render, show, this_screen

    show(render(HEADER, rows(document["tokens"], utc_now()), this_screen()))
    return 0


def rows(tokens: Iterable[Document], now: datetime) -> list[list[str]]:
    """Return a row for each token and code."""
    from grass.cli.printing.quantities import ago, ahead

    return [
        [
            token["name"],
            token["role"],
            "code" if token["code"] else "token",
            token["worker"] or "",
            ago(token["created_at"], now),
            ago(token["used_at"], now),
            ahead(token["expires_at"], now),
        ]
        for token in tokens
    ]


def _revoke(values: Values, rest: list[str]) -> int:
    name = one_word(rest, "the token")
    with Client(broker=values.broker) as client:
        done = client.revoke_token(name)
    if values.has("json"):
        print_document({"token": name, **done})
        return 0
    say(f"revoked {name}")
    return 0


COMMAND = Command(
    usage=(
        "[--role ROLE] [--name NAME] [--hours HOURS] [--login] [--broker ADDRESS] "
        "[--json] "
        "[list | new | revoke TOKEN]"
    ),
    about=(
        "Print a line with which other machines join this broker, list who has joined, "
        "or revoke a token, which cuts its holder off at once. Roles: read (look at "
        "everything), submit (also enqueue, and act on one's own jobs), operate (also "
        "act on everybody's jobs, queues and units), admin (all, tokens and stopping "
        "included), worker (run jobs, nothing else), machine (worker and submit). A "
        "line may be used by many machines until it expires; each gets a token of its "
        "own. With --login the token itself is printed, for a browser."
    ),
    options=OPTIONS,
    examples=(
        "grass token new",
        "grass token new --role read --hours 24 --name dashboard",
        "grass token new --login --role operate --name ada",
        "grass token list",
        "grass token revoke laptop",
    ),
    run=run,
)
