"""`grass brokers`: which broker of the cluster leads, and which stand by."""

from __future__ import annotations

from grass.cli.parsing.options import BROKER, JSON, Command, at_most, read
from grass.cli.printing.quantities import brief
from grass.cli.printing.streams import print_document, say, warn
from grass.cli.printing.table import render, show, this_screen
from grass.client.client import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document

OPTIONS = (BROKER, JSON)
HEADER = ("BROKER", "STATE", "ADDRESS", "HEARD", "LAG", "VERSION")
GONE_S = 10.0
"""A broker that was not heard for this long is taken for one that is gone."""
_TINTS = {"leads": "green", "stands by": "", "gone": "yellow"}


def run(words: list[str]) -> int:
    """List the brokers."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    with Client(broker=values.broker) as client:
        # That nobody leads is an answer here.
        client.waits_for_leader = False
        document = client.brokers()
    if values.has("json"):
        print_document(document)
        return 0
    show(render(HEADER, rows(document), this_screen(), _TINTS))
    if document["epoch"]:
        say(epoch_line(document))
    if not document["leader"]:
        warn("no broker leads at present; one will, if it reaches the database")
    return 0


def epoch_line(document: Document) -> str:
    """Say who leads, or led last, and since when."""
    since = brief(document["led_s"])
    if document["leader"]:
        return f"epoch {document['epoch']}, for {since}"
    last = document.get("last_leader", "")
    names = [one["name"] for one in document["brokers"] if one["id"] == last]
    who = names[0] if names else "a broker that is gone"
    return f"epoch {document['epoch']}, taken {since} ago by {who}"


def rows(document: Document) -> list[list[str]]:
    """Return a row for each broker."""
    return [
        [
            str(one["name"]),
            _state(one),
            str(one["address"]),
            f"{brief(one['heard_s'])} ago" if document["epoch"] else "",
            f"{one['lag_s'] * 1000:.0f} ms" if document["epoch"] else "",
            str(one["version"]),
        ]
        for one in document["brokers"]
    ]


def _state(broker: Document) -> str:
    if broker["leads"]:
        return "leads"
    return "gone" if broker["heard_s"] > GONE_S else "stands by"


COMMAND = Command(
    usage="[--broker ADDRESS] [--json]",
    about="List the brokers of the cluster: who leads, since when, who stands by.",
    options=OPTIONS,
    examples=("grass brokers",),
    run=run,
)
