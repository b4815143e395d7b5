"""A whole run of torture, from its seed to its table.

`python -m tests.fault.torturing --kills 5000` kills the daemon that often; then, in a
second run, daemon and keeper in turn, each a tenth as often; in a third one the keeper
alone, a hundredth as often and with time in between, so that nearly every end must be
known; in a fourth one both, as often as that each, while the disk is full or the keeper
cannot make processes; and in a fifth one the whole machine, as often as that. It prints
the seed first, then how far it is, and a table for each run.
"""

import argparse
import os
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.fault.timeline import KERNEL_TELLS
from tests.fault.torture import CALM, HASTY, SHORT, Timing, Torture
from tests.fault.witness import Attempt, Life, Verdict, judge, lives, most_at_once
from tests.support.homes import GrassHome
from tests.support.shortage import small_disk

KEEPER_SHARE = 10
"""For so many kills of the daemon alone, the keeper is killed once."""
CALM_SHARE = 10
"""For so many kills of the keeper in a hurry, it is killed once with time to spare."""
DISK_BYTES = 64 << 20
REPORT_EVERY = 50
CLOCK_S = 0.05


class Besides(NamedTuple):
    """What goes wrong besides kills, and how often."""

    restarts: int = 0
    """The whole machine goes down."""
    unseen_restarts: int = 0
    """It goes down after a job ended that only the keeper saw."""
    shortages: int = 0
    """The keeper cannot make processes and, where there is one, the disk is full."""
    disk: Path | None = None


class Result(NamedTuple):
    """What came of a run."""

    done: Counter[str]
    jobs: int
    verdict: Verdict
    never_ran: list[int]
    """Called lost although the ledger does not know them."""
    could_be_told: list[int]
    """Called lost although somebody knew how they ended."""
    given_up: list[int]
    """Called lost while they were alive."""
    told_by_keeper: int
    """How many ended while only their keeper knew, and it told after a restart."""
    outlived: int
    """How many ran on without their keeper, and are known to have ended, and how."""
    most_alive: int
    errors: Counter[tuple[str, str]]
    collected_after_s: float

    @property
    def fine(self) -> bool:
        """Tell whether every promise was kept."""
        return self.verdict.fine and not self.could_be_told and not self.given_up


def torture(
    home: GrassHome,
    seed: int,
    kills: tuple[int, int],
    progress: Callable[[int], None] = lambda _done: None,
    timing: Timing = HASTY,
    besides: Besides | None = None,
) -> Result:
    """Kill the daemon and the keeper so many times, and judge what is left."""
    more = besides or Besides()
    victims = ["daemon"] * kills[0] + ["keeper"] * kills[1]
    victims += ["machine"] * more.restarts + ["forks"] * more.shortages
    victims += ["machine unseen"] * more.unseen_restarts
    victims += ["disk"] * (more.shortages if more.disk is not None else 0)
    random.Random(seed).shuffle(victims)
    run = Torture(home, seed, timing, more.disk)
    run.run(victims, progress)
    run.drain()
    told = lives(run.ledger)
    verdict = judge(home, run.ledger, run.numbers)
    lost = [(one, _last(told, one.number)) for one in verdict.called_lost]
    timeline = run.timeline
    return Result(
        run.done,
        len(run.numbers),
        verdict,
        [one.number for one, life in lost if life is None],
        [one.number for one, life in lost if timeline.could_be_told(one, life)],
        [one.number for one, life in lost if _outlived(one, life)],
        _count(told, lost, timeline.known_to_keeper_alone),
        _count(told, lost, timeline.outlived_keeper),
        most_at_once(run.ledger),
        run.errors,
        timeline.collected_after_s,
    )


def _last(told: dict[int, list[Life]], number: int) -> Life | None:
    return told[number][-1] if number in told else None


def _outlived(one: Attempt, life: Life | None) -> bool:
    if life is None or life.ended_at is None:
        return False
    return life.ended_at > one.finished_at + CLOCK_S


def _count(
    told: dict[int, list[Life]],
    lost: list[tuple[Attempt, Life | None]],
    which: Callable[[Life], bool],
) -> int:
    """Count the jobs whose end is known and of which this holds."""
    unknown = {one.number for one, _ in lost}
    known = [runs for number, runs in told.items() if number not in unknown]
    return sum(any(map(which, runs)) for runs in known)


def table(result: Result) -> str:
    """Write what came of a run, one row for each count."""
    verdict, done = result.verdict, result.done
    tells = "yes" if KERNEL_TELLS else "no"
    rows: list[tuple[str, object]] = [
        ("kills of the daemon", done["daemon killed"]),
        ("kills of the keeper", done["keeper killed"]),
        ("stops of the daemon", done["daemon stopped"]),
        ("stops of the keeper", done["keeper stopped"]),
        ("restarts of the machine", done["machine restarted"]),
        ("times that forks failed", done["short of forks"]),
        ("times that the disk was full", done["short of disk"]),
        ("jobs", result.jobs),
        ("most alive at once", result.most_alive),
        ("lost", len(verdict.lost)),
        ("run twice", len(verdict.twice)),
        ("wrong exit codes", len(verdict.wrong)),
        ("output not as written", len(verdict.unlike)),
        ("outlived their keeper, end known", result.outlived),
        ("told by their keeper after a restart", result.told_by_keeper),
        ("attempts called lost", len(verdict.called_lost)),
        ("  of these never ran", len(result.never_ran)),
        ("  of these somebody knew the end", len(result.could_be_told)),
        ("  of these still alive then", len(result.given_up)),
        ("kernel tells the exit to others", tells),
        ("seconds until init collects", f"{result.collected_after_s:.1f}"),
    ]
    rows += [(f"told: {kind}: {text}", n) for (kind, text), n in result.errors.items()]
    return "".join(f"{name:<40} {value!s:>8}\n" for name, value in rows)


def broken(result: Result) -> str:
    """Name the jobs by which a promise was broken, the first of each kind."""
    verdict = result.verdict
    kinds = {
        "lost": verdict.lost,
        "run twice": verdict.twice,
        "wrong exit code": verdict.wrong,
        "output not as written": verdict.unlike,
        "somebody knew the end": result.could_be_told,
        "still alive": result.given_up,
    }
    return "".join(f"{kind}: {jobs[:10]}\n" for kind, jobs in kinds.items() if jobs)


def run(
    seed: int,
    kills: tuple[int, int],
    timing: Timing = HASTY,
    *,
    restarts: int = 0,
    shortages: int = 0,
) -> bool:
    """Torture a home of its own and print what came of it."""
    folder = Path(tempfile.mkdtemp(prefix="grass-torture-"))
    say(f"seed {seed}: {kills[0]} kills of the daemon, {kills[1]} of the keeper")
    began = time.monotonic()

    def progress(done: int) -> None:
        if done % REPORT_EVERY == 0:
            say(f"{done} faults, {time.monotonic() - began:.0f} s")

    with ExitStack() as ends:
        disk = None
        if shortages and os.geteuid() == 0:
            disk = ends.enter_context(small_disk(folder / "disk", DISK_BYTES))
        home = GrassHome(folder, None if disk is None else disk / "home")
        ends.callback(home.end)
        besides = Besides(restarts, shortages=shortages, disk=disk)
        result = torture(home, seed, kills, progress, timing, besides)
    say(table(result))
    if result.fine:
        shutil.rmtree(folder)
    else:
        say(f"{broken(result)}kept in {folder}")
    return result.fine


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run for as long as asked; returns 1 when a promise was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=5000)
    parser.add_argument("--keeper-kills", type=int)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    asked = parser.parse_args()
    keeper: int = asked.keeper_kills
    if keeper is None:
        keeper = asked.kills // KEEPER_SHARE
    fine = not asked.kills or run(asked.seed, (asked.kills, 0))
    if keeper:
        fine = run(asked.seed + 1, (keeper, keeper)) and fine
        calmly = max(1, keeper // CALM_SHARE)
        fine = run(asked.seed + 2, (0, calmly), CALM) and fine
        fine = run(asked.seed + 3, (calmly, calmly), SHORT, shortages=calmly) and fine
        fine = run(asked.seed + 4, (0, 0), CALM, restarts=calmly) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
