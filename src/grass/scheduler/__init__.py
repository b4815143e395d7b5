"""Decides which waiting job starts, and on which units. No clock, no I/O.

How it works, with the module that does it:

- Jobs that ask for the same are one *shape*; only its *head*, the job of best
  order (priority, then arrival), is ever examined (`shapes`).
- A shape is in one of three states. *Ready*: it is tried on every eligible worker in
  the next decision. *Parked*: a *gate* is closed, its queue, a limiter or its type.
  *Blocked*: no worker has enough free; the `BlockedIndex` has it under the kind that
  each worker lacks.
- A release looks up the best blocked shape that fits the freed units
  (`blocked/`), so a decision costs the shapes it starts, not the jobs that wait:
  with a million queued it costs what it costs with a thousand (`dispatch`).
- `placement` picks the units: tightest fit, `vram` on the units of `gpu`. Memory of a
  GPU may be looked up by the *type* of a job (`job_types`, `learned_memory`): nothing
  known of a model of GPU means a whole one, for one job of the type at a time.
- Smaller jobs may overtake a blocked head (backfill). After 100 overtakes or 15 minutes
  the head gets a *reservation*: concrete units of one worker drain for it, and jobs of
  worse order cannot take them (`reservations`). So no job starves.
- A very short job can be *prefetched* while a single shape waits: it takes over the
  units of its predecessor when that is released (`prefetch`).
- `fleet` has the workers and their holders, `worker_units` the units of one worker and
  the views that limit queues there; `explanation` says why a job waits, with what
  one worker lacks from `shortages`; `inspection` answers all other questions;
  `invariants` checks all of it in tests.

`Scheduler` is the only way in.
"""

from grass.scheduler.dispatch import Placement
from grass.scheduler.reasons.explanation import Explanation
from grass.scheduler.reasons.shortages import Need
from grass.scheduler.scheduler import Scheduler

__all__ = ["Explanation", "Need", "Placement", "Scheduler"]
