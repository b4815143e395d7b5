"""`grass gpu`: the GPUs of all workers, their memory, and who is on them."""

from __future__ import annotations

from grass.cli.parsing.options import BROKER, JSON, Command, Option, at_most, read
from grass.cli.printing.gpu_memory import silence
from grass.cli.printing.gpu_page import GpuPage, GpuRows
from grass.cli.printing.show.show_views import AsJson, AsText
from grass.cli.printing.streams import warn
from grass.cli.printing.table import this_screen
from grass.client.client import Client
from grass.model.durations import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.cli.parsing.options import Values
    from grass.cli.printing.show.show_views import ShowView

OPTIONS = (
    Option("--oneline", about="one line for each GPU"),
    Option("--watch", "[SECONDS]", "look again every SECONDS (1), until q"),
    BROKER,
    JSON,
)
USUAL_S, QUICKEST_S = 1.0, 0.2


def run(words: list[str]) -> int:
    """Print the GPUs."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    view: ShowView = GpuRows() if values.has("oneline") else GpuPage()
    form = AsJson() if values.has("json") else AsText()
    with Client(broker=values.broker) as client:
        if values.has("watch"):
            from grass.cli.printing.live_screen import watch

            watch(client, view, form, QUICKEST_S, _refresh_s(values))
        else:
            document = view.read(client)
            form.write(view, document, this_screen())
            for worker in document["workers"]:
                if why := silence(worker):
                    warn(f"{worker['name']}: {why}")
    return 0


def _refresh_s(values: Values) -> float:
    text = values.text("watch")
    return max(QUICKEST_S, seconds(text)) if text else USUAL_S


COMMAND = Command(
    usage="[--oneline] [--watch] [--broker ADDRESS] [--json]",
    about=(
        "Show each GPU of every worker as it is now: its memory in four parts (what "
        "jobs use, what they have reserved and do not use yet, what strangers use, "
        "what is free), how busy and how warm it is, its power, and who is on it. A "
        "stranger is a process that is no job of grass."
    ),
    options=OPTIONS,
    examples=("grass gpu", "grass gpu --watch", "grass gpu --oneline --json"),
    run=run,
)
