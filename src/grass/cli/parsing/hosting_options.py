"""The options of `daemon`, `start` and `restart`: which parts to host, and where."""

from __future__ import annotations

import os
from typing import NamedTuple

from grass.cli.parsing.options import Option, read
from grass.client.autostart import remembered
from grass.config import LOCAL, MARKER, home
from grass.errors import GrassError, NoDatabase, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.cli.parsing.options import Values
    from grass.daemon.hosting import Hosting, RemoteBroker
    from grass.model.addresses import Address

GPUS = Option("--gpus", "LIST", "manage only these GPUs: 0,1, uuids, none, or all")
HOSTING = (
    Option("--bind", "HOST:PORT", "let other machines in, over TLS: 0.0.0.0:7500"),
    Option("--advertise", "HOST", "the name by which others reach this machine"),
    Option("--cert", "FILE", "key and certificate (PKCS#12); default: its own"),
    Option("--cert-pass-file", "FILE", "the pass phrase of --cert is in this file"),
    Option("--no-worker", about="run no jobs here, only the queue"),
    Option("--no-broker", about="have no queue here, only work for another's"),
    Option("--connect", "HOST:PORT", "the broker to work for; implies --no-broker"),
    Option("--name", "NAME", "what this worker is called (default: the host's name)"),
    Option("--label", "LABEL", "what jobs may ask for with --label; repeatable"),
    Option("--on-disconnect", "keep|stop", "jobs here when the broker is out of reach"),
    Option("--lease", "TIME", "with stop: how long it may be out of reach (60s)"),
    GPUS,
    Option("--store", "URL", "the database: sqlite, or postgresql://USER@HOST/NAME"),
    Option("--log-format", "text|json", "how the daemon writes its log"),
)
FRESH = Option("--fresh", about="forget the options that the last daemon here had")
VISIBLE = "CUDA_VISIBLE_DEVICES"
_ENDURES = ("keep", "stop")
_REPLACES = {
    "bind": ("no_broker", "connect", "on_disconnect", "lease"),
    "no_worker": ("no_broker", "connect", "on_disconnect", "lease"),
    "connect": ("bind", "advertise", "cert", "cert_pass_file", "no_worker", "store"),
    "no_broker": ("bind", "advertise", "cert", "cert_pass_file", "no_worker", "store"),
    "store": ("no_broker", "connect", "on_disconnect", "lease"),
    "on_disconnect": ("lease",),
}
"""Which options of the last daemon do not go with one that is given."""


def hosting_of(values: Values, words: Sequence[str] = ()) -> Hosting:
    """Read and check which parts a daemon is to have."""
    from grass.daemon.hosting import Hosting, checked
    from grass.model.addresses import read_address

    bind, connect = values.text("bind"), values.all("connect")
    addresses = [one for text in connect for one in text.split(",")]
    return checked(
        Hosting(
            bind=None if bind is None else read_address(bind),
            advertise=values.text("advertise"),
            cert=values.text("cert"),
            cert_pass_file=values.text("cert_pass_file"),
            has_worker=not values.has("no_worker"),
            connect=tuple(read_address(text) for text in addresses),
            is_worker_only=values.has("no_broker"),
            labels=tuple(_label(text) for text in values.all("label")),
            lease_s=_lease_s(values),
            name=name_of(values),
            gpus=_gpus(values),
            starts_jobs=not values.has("no_starts"),
            store=store_of(values),
            log_format=_log_format(values),
            words=tuple(words),
        )
    )


def visible_gpus() -> str | None:
    """Return the caller's own choice of GPUs; None inside a job, or without one."""
    text = os.environ.get(VISIBLE)
    return None if text is None or MARKER in os.environ else text.strip() or "none"


def choose_gpus(values: Values) -> None:
    """Take CUDA_VISIBLE_DEVICES for --gpus; raise if one of them is not there.

    On a machine without GPUs that variable says nothing: many have it set everywhere.
    """
    visible = None if values.has("gpus") else visible_gpus()
    if visible is not None:
        from grass.devices.gpu_check import look

        if look().units:
            values.add(GPUS, visible)
    check_gpus(values)


def managed_gpus(text: str) -> str:
    """Say which GPUs are managed, of what was written for --gpus: by their indices."""
    from grass.devices.visible import NONE

    if text.lower() in NONE:
        return "no GPUs"
    named = [word.strip() for word in text.split(",")]
    if not all(map(str.isdecimal, named)):
        named = _indices(text) or named
    return f"GPUs {', '.join(named)}"


def _indices(text: str) -> list[str]:
    """Return the units that a text means; none where that cannot be told any more."""
    from grass.devices.gpu_check import look
    from grass.devices.visible import chosen_units

    try:
        return [*chosen_units(text, look().units, missing_ok=True)]
    except UsageError:
        return []


def _gpus(values: Values) -> str | None:
    """Read which GPUs are managed; None: all of them."""
    text = values.text("gpus")
    if text is None or text.strip().lower() == "all":
        return None
    # An empty list, as of a variable that is not set, must not mean all of them.
    return text.strip() or "none"


def check_gpus(values: Values) -> None:
    """Raise if one of the GPUs that were given is not there."""
    text = _gpus(values)
    if text is None:
        return
    from grass.devices.gpu_check import look
    from grass.devices.visible import chosen_units

    chosen_units(text, look().units)


def name_of(values: Values) -> str:
    """Read the worker's name, in the letters that others can type."""
    name = values.text("name")
    if name is None:
        return ""
    from grass.model.worker import check_worker_name

    return check_worker_name(name)


def _label(text: str) -> str:
    from grass.model.resources import check_name

    check_name(text, "label")
    return text


def _log_format(values: Values) -> str | None:
    from grass.log_lines import FORMATS

    form = values.text("log_format")
    if form is not None and form not in FORMATS:
        raise UsageError(f"--log-format is text or json, not `{form}`")
    return form


def store_of(values: Values) -> str | None:
    """Return the database that --store names, without a password in it."""
    text = values.text("store")
    if text is None:
        return None
    from grass.setting_values import check_store

    try:
        return check_store(text)
    except UsageError as error:
        raise NoDatabase(error.message, error.hint) from None


def _lease_s(values: Values) -> float | None:
    from grass.daemon.hosting import DEFAULT_LEASE_S
    from grass.model.durations import seconds

    endures = values.text("on_disconnect") or "keep"
    if endures not in _ENDURES:
        raise UsageError(f"--on-disconnect is keep or stop, not `{endures}`")
    lease = values.text("lease")
    if endures == "keep":
        if lease is not None:
            raise UsageError("--lease goes with --on-disconnect stop")
        return None
    return DEFAULT_LEASE_S if lease is None else seconds(lease)


def given(values: Values) -> list[str]:
    """Write the options as words again, to pass them to a daemon."""
    return [word for option in HOSTING for word in _words(option, values)]


def _words(option: Option, values: Values) -> list[str]:
    return [_written(option, value) for value in values.all(option.key)]


def _written(option: Option, value: str) -> str:
    if not option.value:
        return option.names[-1]
    # A daemon runs in another directory than its caller.
    value = os.path.abspath(value) if option.value == "FILE" else value
    return f"{option.names[-1]}={value}"


class NextOptions(NamedTuple):
    """The options of the next daemon."""

    words: list[str]
    notices: list[str]
    """Which options of the last daemon are replaced by which: one line each."""


def next_options(values: Values) -> NextOptions:
    """Merge the options that were given over those that the last daemon had.

    An option replaces that of the same name, and those that `_REPLACES` lists for it.
    """
    if values.has("fresh"):
        return NextOptions(given(values), [])
    last, _ = read(HOSTING, remembered(home()))
    replaced = {
        key: option.names[-1]
        for option in reversed(HOSTING)
        if values.has(option.key)
        for key in _REPLACES.get(option.key, ())
        if last.has(key) and not values.has(key)
    }
    words = [
        word
        for option in HOSTING
        if option.key not in replaced
        for word in _words(option, values if values.has(option.key) else last)
    ]
    return NextOptions(words, _notices(replaced))


def _notices(replaced: dict[str, str]) -> list[str]:
    names: dict[str, list[str]] = {}
    for option in HOSTING:
        if option.key in replaced:
            names.setdefault(replaced[option.key], []).append(option.names[-1])
    return [f"{by} replaces {', '.join(them)}" for by, them in names.items()]


def check(words: Sequence[str]) -> None:
    """Refuse options with which a daemon could not start, as far as is known now."""
    remote_broker_of(words)


def remote_broker_of(words: Sequence[str]) -> RemoteBroker | None:
    """Find the broker that a daemon with these options works for; None: its own."""
    from grass.daemon.hosting import remote_broker

    return remote_broker(home(), _hosting(words))


def check_successor(words: Sequence[str]) -> None:
    """Refuse options with which a running daemon could not be replaced."""
    from grass.daemon.hosting import remote_broker
    from grass.daemon.preflight import check_database, check_tcp
    from grass.settings import settings_of

    check(words)
    held = last_hosting().bind
    if held is not None and held.port == 0:
        # The daemon has chosen one, which becomes free with it.
        held = _place_of_daemon() or held
    hosting = _hosting(words)
    check_tcp(home(), hosting, held)
    if remote_broker(home(), hosting) is None:
        check_database(home(), hosting.store or settings_of(home()).store)


def _place_of_daemon() -> Address | None:
    """Return where the daemon here listens for other machines."""
    from grass.client.client import Client
    from grass.model.addresses import read_address

    with Client(broker=LOCAL, may_start=False) as client:
        tcp = client.overview()["daemon"].get("tcp")
    return read_address(tcp["address"]) if tcp else None


def last_hosting() -> Hosting:
    """Return what the last daemon here hosted, from its remembered options."""
    from grass.daemon.hosting import Hosting

    try:
        return _hosting(remembered(home()))
    except GrassError:
        return Hosting()


def chosen_store() -> str:
    """Return the database that a broker of this home has, by options and settings."""
    from grass.settings import settings_of

    return last_hosting().store or settings_of(home()).store


def _hosting(words: Sequence[str]) -> Hosting:
    return hosting_of(read(HOSTING, words)[0])
