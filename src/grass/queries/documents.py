"""Replies of routes, except documents about jobs."""

import json
from typing import Any

import msgspec

from grass.broker.core.calls import Done

JsonObject = dict[str, Any]
"""A job, a worker or a queue, as a JSON object."""


def json_bytes(value: object) -> bytes:
    """Encode a reply, with surrogates escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()


class SelectedReply(msgspec.Struct):
    """The jobs that match selectors now, and how many of them run."""

    jobs: list[int]
    count: int
    running: int


class EstimateReply(msgspec.Struct):
    """When selected jobs may have ended, as far as earlier runs tell."""

    ends_at: str | None = None
    """None: nothing of them runs, or one of their names has no earlier run."""
    runs: int = 0
    """How many earlier runs tell so."""


class InputReply(msgspec.Struct):
    """Up to which offset a job's input was taken."""

    offset: int
    closed: bool
    """Whether the job takes no more, or has ended."""


class ForgottenReply(Done):
    """The lost jobs and removed views of a forgotten worker."""

    queues: list[str] = msgspec.field(default_factory=list)
    """The queues that had a view of it."""
    held: list[int] = msgspec.field(default_factory=list)
    """Those of the jobs that are to run again, and may still run on the worker."""


class PrunedReply(msgspec.Struct, omit_defaults=True):
    """How much was forgotten."""

    jobs: int
    output_bytes: int
    warnings: list[str] = []


class GuestReply(msgspec.Struct):
    """Whether a guest has its units, and if so which."""

    id: int
    state: str
    reason: str | None = None
    units: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """The variables that tell it what it is and has; empty: it has nothing."""
    gpus: dict[str, str] = msgspec.field(default_factory=dict)
    """The UUIDs of the machine's GPUs, as far as they are known."""
    profiled: bool = False
    """Whether it is known what its type needs."""


class InnerTypeReply(msgspec.Struct):
    """Whether it is known what a function needs that runs in a job."""

    profiled: bool = False


class EndsReply(msgspec.Struct):
    """Counts of ended jobs by state."""

    ends: dict[str, int]


class QueueReply(msgspec.Struct):
    """What the command line needs of a queue to parse its arguments."""

    name: str
    prefix: list[str]
    paused: bool


class EventReply(msgspec.Struct):
    """One event of the journal."""

    seq: int
    at: str
    actor: str
    kind: str
    job: int | None
    attempt: int | None
    data: dict[str, Any]
    """Its keys depend on the kind."""


class EventsReply(msgspec.Struct):
    """A page of the journal; `next` is `after` of the next call."""

    events: list[EventReply]
    next: int | None


class SettingReply(msgspec.Struct):
    """One setting of the daemon, and where its value comes from."""

    name: str
    value: Any
    origin: str


class ConfigReply(msgspec.Struct):
    """The daemon's own settings."""

    settings: list[SettingReply]


class WorkersReply(msgspec.Struct):
    """All known workers, connected or not."""

    workers: list[dict[str, Any]]


class DevicesReply(msgspec.Struct):
    """The GPUs of all known workers, as they are now."""

    workers: list[dict[str, Any]]


class TokenReply(msgspec.Struct):
    """A token or code, without its secret."""

    name: str
    role: str
    code: bool
    worker: str | None
    """The name of the worker that it is bound to."""
    created_at: str | None
    created_by: str
    expires_at: str | None
    used_at: str | None


class TokensReply(msgspec.Struct):
    """All tokens and codes."""

    tokens: list[TokenReply]


class PilotReply(msgspec.Struct):
    """A pilot, and what its engine says of it."""

    mark: str
    stage: str
    asked_at: str | None
    engine_id: str
    word: str
    reason: str
    place: str
    expected_start: str
    says: str
    """Where its worker is, as long as that has not come."""
    worker: str | None
    connected: bool
    by_hand: bool
    """Whether a person asked for it."""
    job: int | None
    """The only job that it is for; None: it takes any."""
    ends_at: str | None


class PoolReply(msgspec.Struct):
    """A pool with its pilots."""

    name: str
    engine: str
    max_workers: int
    idle_s: float
    time_limit_s: float
    lease_s: float
    mode: str
    environment: str
    cpus: int
    gpus: int
    memory_mib: int | None
    options: list[str]
    source: str
    """Tells apart the files that pools were made from."""
    paused: bool
    removing: bool
    refusals: int
    words: str
    """What the engine said when it last refused, or could not be asked."""
    retry_at: str | None
    pilots: list[PilotReply]


class ScriptReply(msgspec.Struct):
    """What the engine of a pool is given for one worker."""

    script: str


class PilotLog(msgspec.Struct):
    """What a pilot printed."""

    mark: str
    pilot: PilotReply | None
    """What its engine says of it; None: it is gone."""
    text: str
    """The end of it."""


class PoolLogsReply(msgspec.Struct):
    """What the pilots of a pool printed, the last ones last."""

    name: str
    words: str
    """What the engine said when it last refused, or could not be asked."""
    pilots: list[PilotLog]


class PoolsReply(msgspec.Struct):
    """All pools."""

    pools: list[PoolReply]


class ProfilesReply(msgspec.Struct):
    """What is known of job types."""

    profiles: list[JsonObject]


class ExportedReply(msgspec.Struct):
    """Profiles as lines of text."""

    profiles: int
    text: str


class IssuedReply(msgspec.Struct):
    """A new token or code; it is returned only once."""

    name: str
    role: str
    expires_at: str | None
    token: str | None = None
    code: str | None = None


class JoinedReply(msgspec.Struct):
    """A machine's own token, and its cluster."""

    name: str
    role: str
    token: str
    cluster: str
    brokers: list[str] = []
    """The addresses of the cluster's brokers, where it has several."""
    key: str = ""
    """The brokers' key, for a machine that joins as a standby."""
    store: str = ""
    """The database of the brokers, without a password, for such a machine."""


class SessionReply(msgspec.Struct):
    """Who calls, what they may do, and what answers."""

    actor: str
    role: str
    rights: list[str]
    version: str
    cluster: str
    host: str
    """The name of the daemon's machine."""
    home_kind: str
    """`local`, or `broker` where other machines can join."""


class MissingBlobsReply(msgspec.Struct):
    """Which of the named blobs are to be uploaded."""

    missing: list[str]
    largest: int
    """How many bytes one may have."""
    room: int
    """How many bytes the caller may upload before a job names them."""


class BlobReply(msgspec.Struct):
    """A blob that is kept."""

    name: str
    added: bool
    """Whether it is new."""


class WebReply(msgspec.Struct):
    """Where a browser finds the dashboard."""

    url: str
    token: str | None
    """For one login; null where people log in with tokens of their own."""
    host: str
    port: int
    fingerprint: str | None = None
    """SHA-256 of the certificate, as browsers show it."""


class Constraint(msgspec.Struct):
    """One thing that a job needs before it starts, and how much of it there is."""

    what: str
    need: str
    have: str
    of: str | None = None
    ok: bool = False
    note: str = ""


class HolderReply(msgspec.Struct):
    """A job that holds units for which another one waits."""

    job: int | None
    name: str
    units: dict[str, dict[str, float]]
    since: str | None


class ProspectReply(msgspec.Struct):
    """Why a job does not start on one worker of its queue."""

    worker: str
    reason: str
    """One word: free, kept, busy, drained, unreachable, off, too-small and so on."""
    why: str


class ExplainReply(msgspec.Struct):
    """Why a job waits, or how it ended."""

    id: int
    state: str
    why: str
    constraints: list[Constraint] = []
    holders: list[HolderReply] = []
    workers: list[ProspectReply] = []
    """Every worker of its queue, while it is queued."""
    position: int | None = None
    overtaken: int = 0
    estimated_start_at: str | None = None
    estimate_from: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    last_lines: list[str] = []
    frames_left_out: int = 0
    """How many frames of progress bars these lines leave out."""
    max_rss: int | None = None
    cpu_s: float | None = None
    took_s: float | None = None
    usage: list[JsonObject] = []
    """What it asked for, was given and uses, once it has started."""
    usage_note: str = ""
    learned: list[str] = []
    """What its type is given of each model of GPU, if that is looked up."""
    attempts: int = 0
