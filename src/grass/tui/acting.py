"""Calls that a person makes from a screen: asked first where needed, sent in a thread.

What was done, and what the daemon refuses, is told in a line that goes away by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from textual.app import App
from textual.message import Message

from grass.cli.printing.streams import counted, counted_jobs, safe
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.json_codec import Document
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError
from grass.tui import actions
from grass.tui.actions import READ_ONLY, Access, Action
from grass.tui.dialogs import Confirm, Menu, MenuItem, Prompt
from grass.tui.reader import Connect, Reader, why_lost

ApiCall = Callable[[Reader], Document]
PRIORITY = "priority"
_PRIORITY_KEY = "p"


class CallEnded(Message):
    """A call was answered, or failed."""

    def __init__(self, take: Callable[[], None]) -> None:
        super().__init__()
        self.take = take


class ActingApp(App[None]):
    """An application that calls the daemon."""

    def __init__(self, connect: Connect, access: Access) -> None:
        # The terminal's own sixteen colours, and with NO_COLOR none.
        super().__init__(ansi_color=True)
        self.connect = connect
        self.access = access
        self._calls: list[threading.Thread] = []

    def ask(
        self,
        call: ApiCall,
        take: Callable[[Document], None],
        refused: Callable[[str], None],
    ) -> None:
        """Make a call in a thread; `take` gets its answer, or `refused` the reason."""

        def work() -> None:
            try:
                with self.connect() as reader:
                    document = call(reader)
            except (GrassError, Broken, OSError) as error:
                why = why_lost(error)
                self.post_message(CallEnded(lambda: refused(why)))
            else:
                self.post_message(CallEnded(lambda: take(document)))

        thread = threading.Thread(target=work, daemon=True)
        with CtrlCForMain():
            thread.start()
        self._calls = [one for one in self._calls if one.is_alive()] + [thread]

    def on_call_ended(self, message: CallEnded) -> None:
        """Take an answer over."""
        message.take()

    def finish_calls(self, limit_s: float) -> None:
        """Wait for the calls that are on their way."""
        for thread in self._calls:
            thread.join(limit_s)

    def change(self, call: ApiCall, done: str) -> None:
        """Change something, and say so."""

        def take(document: Document) -> None:
            for warning in document.get("warnings", ())[:3]:
                self.notify(safe(warning), severity="warning", markup=False)
            if document.get("jobs") or document.get("changed"):
                self.notify(safe(done), markup=False)

        self.ask(call, take, self.complain)

    def complain(self, why: str) -> None:
        """Show why something was not done."""
        self.notify(safe(why), severity="error", markup=False)

    def change_after(self, question: str, call: ApiCall, done: str) -> None:
        """Change something if a question is answered with yes."""

        def answered(yes: bool | None) -> None:
            if yes:
                self.change(call, done)

        self.push_screen(Confirm(question), answered)

    def act(self, action: Action, jobs: Sequence[Document]) -> None:
        """Do something to the jobs that it fits, after a question where it is due."""
        if not jobs:
            return
        fitting = [job for job in jobs if action.fits(job, self.access)]
        if not fitting:
            self.complain(self._why_not(action, jobs))
            return
        count = actions.count(fitting)
        which = f"job {fitting[0]['id']}" if count == 1 else counted(count, "job")
        select = actions.selectors(fitting)

        def call(client: Client) -> Document:
            return action.send(client, select)

        done = f"{which} {action.past}"
        if count > 1:
            meant = counted_jobs(count, actions.count_running(fitting))
            self.change_after(f"{action.label}: {meant}?", call, done)
        elif action.asks:
            self.change_after(f"{action.label}: {which}?", call, done)
        else:
            self.change(call, done)

    @property
    def _forbidden(self) -> str:
        """Why the person at the screen may not do something."""
        by_choice = self.access == READ_ONLY
        return "this screen is read-only" if by_choice else "your role may not do this"

    def _why_not(self, action: Action, jobs: Sequence[Document]) -> str:
        if any(action.applies(job) for job in jobs):
            return self._forbidden
        which = f"job {jobs[0]['id']} is {jobs[0]['state']}"
        which = which if len(jobs) == 1 else "none of these jobs is in such a state"
        return f"{which}: nothing to {action.command}"

    def open_menu(self, jobs: Sequence[Document]) -> None:
        """Choose among what can be done to jobs."""
        offered = actions.offered(jobs, self.access)
        choices = [MenuItem(one.id, one.label, one.key) for one in offered]
        if any(one.id == "first" for one in offered):
            choices.append(MenuItem(PRIORITY, "Change the priority", _PRIORITY_KEY))
        if not choices:
            self.complain("there is nothing that can be done here")
            return

        def chosen(id: str | None) -> None:
            if id == PRIORITY:
                self.ask_priority(jobs)
            for one in offered:
                if one.id == id:
                    self.act(one, jobs)

        count = actions.count(jobs)
        title = f"job {jobs[0]['id']}" if count == 1 else counted(count, "job")
        self.push_screen(Menu(title, choices), chosen)

    def ask_priority(self, jobs: Sequence[Document]) -> None:
        """Give jobs that have not started another priority."""
        first = next(one for one in actions.ACTIONS if one.id == "first")
        fitting = [job for job in jobs if first.fits(job, self.access)]
        if not fitting:
            self.complain("only a job that has not started takes another priority")
            return
        select = actions.selectors(fitting)
        which = counted(actions.count(fitting), "job")

        def typed(text: str | None) -> None:
            if text is None:
                return
            try:
                number = int(text)
            except ValueError:
                self.complain(f"`{text}` is no whole number")
                return
            self.change(
                lambda client: client.edit(select, priority=number),
                f"{which}: priority {number}",
            )

        usual = str(fitting[0].get("priority", 0))
        self.push_screen(
            Prompt(f"priority of {which} (higher is sooner)", usual), typed
        )

    def action_new(self) -> None:
        """Enqueue a line for the shell."""
        if not self.access.may_enqueue:
            self.complain(self._forbidden)
            return

        def typed(line: str | None) -> None:
            if line and line.strip():
                self.ask(
                    lambda client: {"id": client.enqueue(line)},
                    lambda done: self.notify(f"job {done['id']} enqueued"),
                    self.complain,
                )

        hint = "python train.py --lr 0.1"
        self.push_screen(
            Prompt("enqueue a command, with the usual request", "", hint), typed
        )
