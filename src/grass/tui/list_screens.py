"""Screens with a list: the GPUs and who is on them, and the queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from grass.cli.printing.gpu_page import NONE, GpuPage
from grass.cli.printing.show import summary
from grass.cli.printing.table import lines
from grass.client.client import Client
from grass.client.json_codec import Document
from grass.tui.cursor_list import CursorList
from grass.tui.painting import from_printed
from grass.tui.text_screens import DrawnScreen


class ListScreen(DrawnScreen):
    """A title, things to choose among, and the keys."""

    ABOUT = ""
    HINT = ""
    LIST: ClassVar[type[CursorList]] = CursorList

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.leave", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Static(Text(self.ABOUT, "bold"), id="head")
        yield Static(id="columns")
        yield self.LIST(id="things", compact=True, markup=False)
        yield Static(f"[@click=app.leave][b]Esc[/b] back[/]  {self.HINT}", id="foot")

    def on_mount(self) -> None:
        """Draw what is known already."""
        self.query_one(CursorList).focus()
        self.draw()

    def draw(self) -> None:
        """Draw the list anew, with the cursor where it was."""
        if not self.is_mounted:
            return
        self.set_class(bool(self.app.state.lost), "-away")
        listed = self.query_one(CursorList)
        header, blocks = self.blocks()
        columns = self.query_one("#columns", Static)
        columns.display = bool(header)
        columns.update(from_printed([header]))
        if listed.option_count == len(blocks):
            for place, block in enumerate(blocks):
                listed.replace_option_prompt_at_index(place, block)
            return
        at = listed.highlighted
        listed.set_options([Option(block) for block in blocks])
        listed.highlighted = min(at or 0, len(blocks) - 1) if blocks else None

    def blocks(self) -> tuple[str, list[Text]]:
        """Return a heading, and the text of each thing."""
        raise NotImplementedError

    @property
    def at(self) -> int | None:
        """The place of the cursor."""
        return self.query_one(CursorList).highlighted

    def action_move(self, step: int) -> None:
        """Move the cursor."""
        self.query_one(CursorList).move(step)


class GpuList(CursorList):
    """GPUs, whose bars keep their colours under the cursor."""

    COVERS_ALL = False


class GpuScreen(ListScreen):
    """Every GPU, and the processes on it."""

    ABOUT = "GPUs"
    LIST = GpuList
    HINT = "[@click=screen.drain][b]d[/b] drain, or use again[/]  [b]j k[/b] move"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("d", "drain", show=False)]

    def _gpus(self) -> list[tuple[Document, Document]]:
        workers = self.app.state.devices["workers"]
        return [(worker, gpu) for worker in workers for gpu in worker["gpus"]]

    def blocks(self) -> tuple[str, list[Text]]:
        """Return what `grass gpu` prints of each."""
        found = []
        for worker, gpu in self._gpus():
            document = {"workers": [{**worker, "gpus": [gpu]}]}
            page = GpuPage().page(document, self.paper)
            found.append(from_printed([*page.body, ""]))
        return "", found or [Text(NONE)]

    def action_drain(self) -> None:
        """Start nothing new on a GPU, or do so again."""
        gpus = self._gpus()
        if self.at is None or self.at >= len(gpus) or not self.app.access.may_operate:
            return
        worker, gpu = gpus[self.at]
        unit, name = f"gpu:{gpu['unit']}", worker["name"]
        fault = gpu["fault"]
        if gpu["drained"] or (fault and not fault["acknowledged"]):
            lost = fault and fault["works_since"] is None
            said = "has its fault acknowledged" if lost else "starts jobs again"
            self.app.change(
                lambda client: client.resume(unit=unit, worker=name),
                f"{name} {unit} {said}",
            )
        else:
            self.app.change_after(
                f"drain {name} {unit}?",
                lambda client: client.drain(unit, name),
                f"{name} {unit} starts nothing new",
            )


class QueueScreen(ListScreen):
    """Every queue."""

    ABOUT = "Queues"
    HINT = (
        "[b]Enter[/b] its jobs  [@click=screen.pause][b]d[/b] pause, or resume[/]  "
        "[b]j k[/b] move"
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("d", "pause", show=False)]

    def blocks(self) -> tuple[str, list[Text]]:
        """Return the rows of `grass show --queues`."""
        rows = summary.queue_rows(self.app.state.queues)
        head, *body = lines(summary.QUEUES, rows, self.paper)
        return head, [from_printed([line]) for line in body]

    def _queue(self) -> Document | None:
        queues: Sequence[Document] = self.app.state.queues
        return None if self.at is None or self.at >= len(queues) else queues[self.at]

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Show the jobs of a queue."""
        event.stop()
        queue = self._queue()
        if queue is not None:
            self.app.action_leave()
            self.app.choose([f"queue:{queue['name']}"])

    def action_pause(self) -> None:
        """Start no more jobs of a queue, or do so again."""
        queue = self._queue()
        if queue is None or not self.app.access.may_operate:
            return
        name = queue["name"]

        def resume(client: Client) -> Document:
            return client.resume(name)

        def pause(client: Client) -> Document:
            return client.pause(name)

        if queue["paused"]:
            self.app.change(resume, f"queue {name} starts jobs again")
        else:
            self.app.change_after(f"pause queue {name}?", pause, f"queue {name} paused")
