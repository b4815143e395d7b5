"""The first screen: GPUs over jobs over the job under the cursor.

Where there is little room, the job under the cursor is left out; Enter opens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input, OptionList

from grass.cli.printing.quantities import utc_now
from grass.cli.printing.show.summary import elsewhere, gpu_notes, notes
from grass.cli.printing.streams import counted
from grass.cli.printing.styled import Styled, cells
from grass.cli.printing.table import Screen as Paper
from grass.tui import actions
from grass.tui.gpu_bars import Room, free_text, gpu_lines, worker_text
from grass.tui.job_list import SORTS, JobList
from grass.tui.job_pane import JobPane
from grass.tui.painting import from_printed, painted, painted_lines
from grass.tui.part import Part
from grass.tui.screen_state import badge, counts

if TYPE_CHECKING:
    from grass.tui.app import TopApp

TALL, WIDE = 34, 140
"""From how many lines on the pane is below, and from how many columns beside."""
_BARS_SHARE = 3
"""What part of the height the GPUs may take."""
_HINTS_WIDE = 90
HINTS = (
    ("?", "help", "app.help"),
    ("/", "filter", "screen.filter"),
    ("Enter", "open", "screen.open"),
    ("l", "log", "screen.log"),
    ("e", "explain", "screen.explain"),
    (".", "actions", "screen.actions"),
    ("s", "sort", "screen.sort"),
    ("p", "pause", "app.pause"),
    ("q", "quit", "app.quit"),
)
WELCOME = """\
No jobs yet. In another terminal:

  grass enqueue -- python train.py        a job
  grass enqueue -g 0.5 -- python train.py half of a GPU for it
  grass run -- python train.py            wait for it, and see what it writes
"""


class MainScreen(Screen[None]):
    """GPUs, jobs, and the job under the cursor."""

    app: TopApp

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
        Binding("x,space", "mark", show=False),
        Binding("a", "mark_all", show=False),
        Binding("enter", "open", show=False),
        Binding("l", "log", show=False),
        Binding("e", "explain", show=False),
        Binding("full_stop", "actions", show=False),
        Binding("slash", "filter", show=False),
        Binding("s", "sort", show=False),
        Binding("tab", "app.focus_next", show=False),
        Binding("escape", "back", show=False),
        Binding("P", "priority", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Part(id="head")
        yield Part(id="gpus")
        yield Input(placeholder="state:failed  name~lr  @project  7-12", id="filter")
        with Vertical(id="body"):
            with Vertical(id="table"):
                yield Part(id="columns")
                yield JobList(self.app.signs, id="jobs")
                yield Part(id="empty")
                yield Part(id="more")
            yield JobPane(id="pane")
        yield Part(id="foot")

    def on_mount(self) -> None:
        """Begin with the cursor in the table."""
        self.query_one("#filter", Input).display = False
        self.jobs.focus()
        self._arrange()

    @property
    def jobs(self) -> JobList:
        """The table."""
        return self.query_one(JobList)

    @property
    def pane(self) -> JobPane:
        """The job under the cursor."""
        return self.query_one(JobPane)

    def on_resize(self, _event: events.Resize) -> None:
        """Show as much as there is room for."""
        self._arrange()
        self.call_after_refresh(self.draw)

    def _arrange(self) -> None:
        width, height = self.app.size
        below = height >= TALL
        beside = not below and width >= WIDE
        self.set_class(below, "-below")
        self.set_class(beside, "-beside")
        self.pane.display = below or beside

    def part(self, name: str) -> Part:
        """Return a part by its name."""
        return self.query_one(f"#{name}", Part)

    def draw_topic(self, topic: str) -> None:
        """Draw what has changed because something was read."""
        if topic == "job" and not self.has_class("-away"):
            self.pane.draw()
        elif topic in ("devices", "strip") and not self.has_class("-away"):
            self._draw_gpus()
        else:
            self.draw()

    def draw(self) -> None:
        """Draw all anew from what is known."""
        if not self.is_mounted:
            return
        self.set_class(bool(self.app.state.lost), "-away")
        self._draw_head()
        self._draw_gpus()
        self._draw_jobs()
        self._draw_foot()
        self.pane.draw()

    def _draw_head(self) -> None:
        state, signs, width = self.app.state, self.app.signs, self.app.size.width
        right = badge(state, signs)
        if self.app.is_read_only:
            right = Styled(("read-only  ", "dim")) + right
        name = Styled(("grass  ", "bold"))
        room = width - 2 - cells(str(name + right))
        left = name + counts(state, signs, room)
        gap = max(1, width - 2 - cells(str(left)) - cells(str(right)))
        line = left + Styled((" " * gap, "")) + right
        self.part("head").put(painted(line))

    def _draw_gpus(self) -> None:
        state, signs = self.app.state, self.app.signs
        width, height = self.app.size
        paper = Paper(width - 2, colours=True, signs=signs)
        room = Room(width - 2, max(2, height // _BARS_SHARE), height >= TALL)
        lines = gpu_lines(state.devices, state.strips, room, signs, utc_now())
        if lines:
            text = painted_lines(lines)
            if len(lines) + 1 < room.height and room.is_roomy:
                free = from_printed(free_text(state.workers, paper))
                text = Text("\n").join([text, free])
        else:
            text = from_printed(worker_text(state.workers, paper)[1 : room.height])
        self.part("gpus").put(text)

    def _draw_jobs(self) -> None:
        state, table = self.app.state, self.jobs
        shown = state.shown
        empty = self.part("empty")
        message = self._message()
        empty.display = bool(message)
        empty.put(Text(message))
        table.display = not message
        self.part("columns").display = not message
        if shown is None or message:
            self.part("more").display = False
            if shown is not None:
                table.show((), ())
            return
        table.show(shown["jobs"], shown["arrays"])
        gutter = "  "
        self.part("columns").put(from_printed([gutter + table.header]))
        self._draw_more()

    def _message(self) -> str:
        """Return what stands in place of the jobs."""
        state = self.app.state
        if state.overview is None:
            return state.lost or "reading"
        shown = state.shown or {"refused": "reading"}
        if "refused" in shown:
            return f"{shown['refused']}\n\nEsc clears the filter"
        if shown["jobs"] or shown["arrays"]:
            return ""
        if state.select:
            count = counted(sum(state.totals.values()), "job")
            return f"0 of {count}: `{' '.join(state.select)}`. Esc clears the filter"
        return elsewhere(state.overview["daemon"]) or WELCOME

    def _draw_more(self) -> None:
        """Say what is left out, what is filtered, selected, sorted and paused."""
        state, table = self.app.state, self.jobs
        shown = state.shown or {"totals": {}}
        told = [*notes(state.queues)]
        told += gpu_notes(state.overview["workers"] if state.overview else ())
        if state.overview is not None and state.overview["daemon"]["paused"]:
            told.append("grass is paused: `grass resume` starts jobs again")
        if state.select:
            told.append(f"filter: {' '.join(state.select)} (Esc clears)")
        if table.sort:
            told.append(f"sorted by {table.sort}")
        if table.marked:
            told.append(f"{actions.count(table.targets)} selected (Esc clears)")
        left = sum(shown["totals"].values()) - sum(table.covered.values())
        if left > 0:
            told.append(f"and {counted(left, 'job')} more")
        more = self.part("more")
        more.display = bool(told)
        more.put(
            Text.assemble(
                ("; ".join(told), "yellow"), no_wrap=True, overflow="ellipsis"
            )
        )

    def _draw_foot(self) -> None:
        state = self.app.state
        if state.lost:
            why = f"{state.lost}; asking again every second. q quits"
            self.part("foot").put(Text.assemble((why, "red")))
            return
        if self.app.chord:
            self.part("foot").put(Text(self.app.chord_hint))
            return
        narrow = self.app.size.width < _HINTS_WIDE
        hints = "  ".join(
            f"[@click={action}][b]{key}[/b] {label}[/]"
            for key, label, action in HINTS
            if not (narrow and label == "open")
            and not (self.app.is_read_only and label == "actions")
        )
        self.part("foot").put(hints)

    def on_option_list_option_highlighted(
        self, _event: OptionList.OptionHighlighted
    ) -> None:
        """Show the job under the cursor in the pane."""
        self.pane.look_at(self.jobs.current)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the job under the cursor."""
        event.stop()
        self.action_open()

    def on_job_list_opened(self) -> None:
        """Open the job that was clicked twice."""
        self.action_open()

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose heading was clicked."""
        if event.widget is self.part("columns"):
            self._sort_by(event.x - event.widget.region.x)

    def on_key(self, event: events.Key) -> None:
        """Do what a key of the table of actions says."""
        action = actions.of_shortcut(event.character or "")
        if action is not None and not self.app.chord:
            event.stop()
            self.app.act(action, self.jobs.targets)

    def action_move(self, step: int) -> None:
        """Move the cursor."""
        self.jobs.move(step)

    def action_mark(self) -> None:
        """Select the row under the cursor."""
        self.jobs.mark()
        self._draw_jobs()

    def action_mark_all(self) -> None:
        """Select all rows that are shown."""
        self.jobs.mark_all()
        self._draw_jobs()

    def action_back(self) -> None:
        """Take back the last of: the filter's line, marks, the filter."""
        line = self.query_one("#filter", Input)
        if line.display:
            line.display = False
            self.jobs.focus()
        elif self.jobs.marked:
            self.jobs.marked = set()
            self._draw_jobs()
        elif self.app.state.select:
            self.app.choose(())

    def action_filter(self) -> None:
        """Type selector words."""
        line = self.query_one("#filter", Input)
        line.value = " ".join(self.app.state.select)
        line.display = True
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Show the jobs that the words select."""
        event.input.display = False
        self.jobs.focus()
        self.app.choose(event.value.split())

    def action_sort(self) -> None:
        """Sort by the next column."""
        known = self.jobs.sort if self.jobs.sort in SORTS else ""
        place = (SORTS.index(known) + 1) % len(SORTS)
        self.jobs.sort = SORTS[place]
        self._draw_jobs()

    def action_open(self) -> None:
        """Open the job under the cursor; of an array, its members."""
        job = self.jobs.current
        if job is not None and "members" in job:
            self.app.choose([str(job["id"])])
        elif job is not None:
            self.app.open_job(job)

    def action_log(self) -> None:
        """Open the log of the job under the cursor."""
        self.app.open_log(self.jobs.current)

    def action_explain(self) -> None:
        """Say why the job under the cursor waits, or how it ended."""
        self.app.open_explanation(self.jobs.current)

    def action_actions(self) -> None:
        """Choose among what can be done to the selected jobs."""
        self.app.open_menu(self.jobs.targets)

    def action_priority(self) -> None:
        """Give the selected jobs another priority."""
        self.app.ask_priority(self.jobs.targets)

    def _sort_by(self, x: int) -> None:
        """Sort by the column at a place; once more, the other way round."""
        header = "  " + from_printed([self.jobs.header]).plain
        start = x
        while start > 0 and header[start - 1 : start + 1].strip():
            start -= 1
        name = header[start:].split(maxsplit=1)[0].lower() if header[x:] else ""
        if not name:
            return
        self.jobs.sort = f"-{name}" if self.jobs.sort == name else name
        self._draw_jobs()
