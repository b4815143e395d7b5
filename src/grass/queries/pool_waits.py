"""Where a job is that waits for a worker of a pool, in the words of its engine."""

from datetime import datetime

from grass.broker.core.pools.engine_answers import UNLISTED_US
from grass.broker.core.pools.pool_memory import placeholder
from grass.broker.core.state import State
from grass.model.jobs.job import Job
from grass.model.pools import Pilot, PilotStage, PilotState, Pool
from grass.model.times import moment

_ENGINES = {"slurm": "Slurm", "ray": "Ray"}


def pool_words(state: State, job: Job) -> str | None:
    """Say what a queued job waits for in a pool that could run it; None: in none."""
    wanted = state.specs[job.spec].pool
    if wanted is not None and not _is_there(state.pools.pools.get(wanted)):
        return (
            f"pool `{wanted}`, whose workers alone may run it, is removed"
            f" (`grass edit {job.id} --pool none` lets others run it)"
        )
    for pilot in state.pools.pilots.values():
        is_coming = not pilot.connected and pilot.stage is not PilotStage.LEAVING
        if pilot.job == job.id and is_coming:
            return pilot_words(state, pilot)
    fitting = [one for one in state.pools.pools.values() if _fits(state, one, job)]
    said = [words_for(state, pool, job.id) for pool in fitting]
    return "; ".join(said) or None


def pool_of(state: State, worker: str) -> Pool | None:
    """Return the pool that a worker which may come is of."""
    pools = state.pools.pools.values()
    return next((one for one in pools if placeholder(one.name) == worker), None)


def words_for(state: State, pool: Pool, job: int) -> str:
    """Say what a pool does about one job, for which it may have refused a worker."""
    refused = state.pools.refused_jobs.get(job)
    if refused is None or refused.pool != pool.name or pool.paused:
        return _words_of(state, pool)
    if refused.retry_at is None:
        return (
            f"pool `{pool.name}` is not asked any more: {refused.words};"
            f" `grass pool resume {pool.name}` asks again"
        )
    again_at = max(refused.retry_at, pool.retry_at or 0)
    if again_at <= state.now_us:
        return _words_of(state, pool)
    at = moment(again_at)
    return f"pool `{pool.name}` is asked again at {at}: {refused.words}"


def _words_of(state: State, pool: Pool) -> str:
    """Say what a pool does about jobs that wait for its workers."""
    coming = [one for one in state.pools.coming(pool.name) if one.job is None]
    if coming:
        return pilot_words(state, coming[0])
    name, why = f"pool `{pool.name}`", f": {pool.words}" if pool.words else ""
    if pool.paused:
        return f"{name} is paused{why}; `grass pool resume {pool.name}` asks again"
    if pool.retry_at is not None and pool.retry_at > state.now_us:
        return f"{name} is asked again at {moment(pool.retry_at)}{why}"
    there = len(state.pools.pilots_of(pool.name))
    if there >= pool.max_workers:
        return f"{name} has {there} of at most {pool.max_workers} workers"
    return f"{name} asks for a worker"


def pilot_words(state: State, pilot: Pilot) -> str:
    """Say where the worker of a pilot is that has not come, and of an outage."""
    silence = silence_words(state, state.pools.pools[pilot.pool])
    known = _report_words(state, pilot) if pilot.report or not silence else ""
    return "; ".join(filter(None, (known, silence)))


def silence_words(state: State, pool: Pool) -> str:
    """Say that the engine of a pool does not answer; "": it did when last asked."""
    silence = state.pools.silent.get(pool.name)
    if silence is None:
        return ""
    again = f"it is asked again at {moment(silence.again_at)}"
    return f"{_engine(pool)} does not answer: {silence.words}; {again}"


def _engine(pool: Pool) -> str:
    return _ENGINES.get(pool.engine, f"pool `{pool.name}`")


def _report_words(state: State, pilot: Pilot) -> str:
    pool, report = state.pools.pools[pilot.pool], pilot.report
    engine = _engine(pool)
    if report is None and pilot.unsure_since is not None:
        again = f"it is asked again at {moment(pilot.unsure_since + UNLISTED_US)}"
        unsure = f"{engine} has not said whether it took its worker"
        return f"{unsure}; unless {engine} lists it, {again}"
    if report is None:
        return f"waits until {engine} has taken its worker"
    number = f"job {report.engine_id}"
    if report.state is PilotState.RUNNING:
        where = f" on {report.place}" if report.place else ""
        return f"its worker starts{where}: {engine} {number}"
    place = f" partition {report.place}" if pool.engine == "slurm" else ""
    start = _clock(report.expected_start)
    parts = (report.reason or report.word.capitalize(), number, start)
    where = f"{engine}{place}" if report.place else engine
    return f"waits in {where}: {', '.join(filter(None, parts))}"


def _is_there(pool: Pool | None) -> bool:
    return pool is not None and not pool.removing


def _fits(state: State, pool: Pool, job: Job) -> bool:
    return _is_there(pool) and state.scheduler.could_run(placeholder(pool.name), job.id)


def _clock(text: str) -> str:
    """Return when a start is expected; of today, the time alone."""
    if not text:
        return ""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return f"estimated start {text}"
    is_today = at.date() == datetime.now(at.tzinfo).date()
    return f"estimated start {at:%H:%M}" if is_today else f"estimated start {text}"
