"""Python functions as jobs: uploading them, enqueueing calls, reading results.

What a job needs is uploaded before the enqueue that names it, and only if the broker
does not have it. A function that this process has enqueued before is taken to be there;
where it is not any more, the broker says so and it is uploaded again.
"""

from __future__ import annotations

import inspect
import sys
from functools import partial
from time import monotonic
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, NamedTuple

from grass.client.id_ranges import as_ranges
from grass.errors import (
    MissingBlob,
    NoResult,
    NotFound,
    Refused,
    TimedOut,
    TooLarge,
    UsageError,
)
from grass.tasks.errors import TaskLost
from grass.tasks.neighbours import with_neighbours
from grass.tasks.task import name_of
from grass.verbs.keywords import JobOptions
from grass.verbs.packing import (
    PYTHON,
    Packed,
    blob_reference,
    check_owner,
    inline,
    pack_arguments,
    pack_function,
    unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from grass.client.client import Client
    from grass.client.json_codec import Document

MOST_INLINE_TOGETHER = 32 * 2**20
"""In bytes: where arguments of one call are more, only tiny ones travel in it."""
TINY = 256
_TRIES = 3
_TOGETHER = 500
"""How many results are read at a time."""
_uploaded: dict[str, set[str]] = {}
"""By broker: blobs that this process has uploaded, or that were there."""


class PackedCall(NamedTuple):
    """One call of a function that is to be a job."""

    function: Packed
    arguments: Packed
    fields: Document
    """What else its job is given, as documents of the API have it."""


def enqueue_tasks(
    client: Client, calls: Sequence[PackedCall], defaults: Document
) -> Document:
    """Add a job for each call, all or none; return the reply of the broker."""
    request = _Request(client, calls)
    jobs = [
        {**one.fields, "task": request.task(one.function), "arguments": text}
        for one, text in zip(calls, request.arguments, strict=True)
    ]
    return request.sent(lambda: client.enqueue_jobs(jobs, defaults))


def enqueue_array_of_tasks(
    client: Client, calls: Sequence[PackedCall], defaults: Document
) -> Document:
    """Add calls of one function as the members of an array."""
    request = _Request(client, calls)
    jobs = [{**calls[0].fields, "task": request.task(calls[0].function)}]
    return request.sent(
        lambda: client.enqueue_jobs(jobs, defaults, None, request.arguments)
    )


class _Request:
    """The blobs that a call names, and their upload."""

    def __init__(self, client: Client, calls: Sequence[PackedCall]) -> None:
        self._client = client
        self._blobs: dict[str, Packed] = {}
        self._names: dict[int, str] = {}
        small = sum(one.arguments.size for one in calls)
        most = TINY if small > MOST_INLINE_TOGETHER else None
        self.arguments = [self._arguments(one.arguments, most) for one in calls]
        self._known = _uploaded.setdefault(client.peer, set())

    def task(self, function: Packed) -> Document:
        """Return the function of a job as a request has it."""
        name = self._names.get(id(function))
        if name is None:
            name = self._names[id(function)] = function.name
            self._blobs[name] = function
        task: Document = {"function": name, "python": PYTHON, "name": function.title}
        if not self._client.remote:
            task["interpreter"] = sys.executable
        return task

    def _arguments(self, packed: Packed, most: int | None) -> str:
        text = inline(packed) if most is None or packed.size <= most else None
        if text is not None:
            return text
        name = packed.name
        self._blobs[name] = packed
        return blob_reference(name)

    def sent(self, send: Callable[[], Document]) -> Document:
        """Upload what is not there, and make the call; again if something is gone."""
        for tries in range(_TRIES):
            names = [name for name in self._blobs if name not in self._known]
            if names:
                self._upload(names)
            try:
                return send()
            except MissingBlob:
                self._known.difference_update(self._blobs)
                if tries == _TRIES - 1:
                    raise
        raise AssertionError

    def _upload(self, names: list[str]) -> None:
        client = self._client
        try:
            reply = client.missing_blobs(names)
        except NotFound:
            raise Refused(
                f"{client.peer} has an older grass, which runs no Python functions",
                "install the same version there",
            ) from None
        for name in reply["missing"]:
            if self._blobs[name].size > reply["largest"]:
                raise _too_large(self._blobs[name], reply["largest"])
        needed = sum(self._blobs[name].size for name in reply["missing"])
        room = reply.get("room", needed)
        if needed > room:
            raise Refused(
                f"these calls need {needed:,} bytes at {client.peer}, which takes"
                f" {room:,} more of you before a job names them",
                "enqueue fewer at a time; its setting tasks.unnamed says how many",
            )
        for name in reply["missing"]:
            client.add_blob(name, self._blobs[name].pieces)
        self._known.update(names)


def _too_large(blob: Packed, largest: int) -> TooLarge:
    return TooLarge(
        f"{blob.what}: {blob.size:,} bytes, and the broker takes {largest:,}",
        "its setting tasks.largest says how many; pass the path of a file instead",
    )


def read_result(client: Client, job: int, timeout_s: float | None = None) -> Any:  # noqa: ANN401
    """Return what a task returned once it has ended, or raise what it raised."""
    return unpacked(read_content(client, job, timeout_s), job)


def read_content(
    client: Client, job: int, timeout_s: float | None = None
) -> bytes | bytearray:
    """Return the result of a task, pickled, once it has ended.

    Results of jobs of other users are refused: they are not to be unpickled.
    """
    try:
        headers, content = client.result(job, timeout_s)
    except NoResult as error:
        raise _lost(client, job) or error from None
    check_owner(headers, job)
    return content


def read_results(
    client: Client, jobs: Sequence[int], timeout_s: float | None
) -> Iterator[Any]:
    """Yield what tasks returned, in order, once all have ended.

    Raises what the first raised. Small results are read while later tasks run: nobody
    would use the other cores if all were read at the end.
    """
    until_s = None if timeout_s is None else monotonic() + timeout_s
    small: dict[int, tuple[bool, bytes]] = {}
    for begin in range(0, len(jobs), _TOGETHER):
        some = jobs[begin : begin + _TOGETHER]
        left_s = None if until_s is None else max(0.0, until_s - monotonic())
        try:
            client.wait(as_ranges(some), left_s)
        except TimedOut:
            # It names how many of all have not ended.
            client.wait(as_ranges(jobs), 0.0)
        small |= client.small_results(some)
    for job in jobs:
        is_own, content = small.pop(job, (False, b""))
        yield unpacked(content, job) if is_own else read_result(client, job)


def _lost(client: Client, job: int) -> TaskLost | None:
    """Return the error of a task that is lost; None: it is not."""
    try:
        known = client.job(job)
    except NotFound:
        return None
    if known["state"] != "lost":
        return None
    because = f": {known['reason']}" if known["reason"] else ""
    return TaskLost(f"`{known['name']}`, job {job}, is lost{because}")


def split_keywords(
    function: Callable[..., Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell what of the keywords is the function's, and what are options of its job."""
    options = {name: given[name] for name in given if name in _OPTIONS}
    own = {name: given[name] for name in given if name not in _OPTIONS}
    for name in options:
        if name in _parameters(function):
            raise UsageError(
                f"`{name}=` is an option of a job, and a parameter of"
                f" `{name_of(function)}` as well",
                f"give the function its own with functools.partial(..., {name}=...)",
            )
    return own, options


def calls_of(
    function: Callable[..., Any],
    arguments: Iterable[tuple[tuple[Any, ...], Mapping[str, Any]]],
) -> list[PackedCall]:
    """Pack calls of one function, with what modules beside the script define."""
    with with_neighbours():
        packed, calls = pack_function(function), list[PackedCall]()
        for args, kwargs in arguments:
            if not calls:
                # All are of the same form.
                _check_call(function, packed.title, args, kwargs)
            try:
                packed_arguments = pack_arguments(packed.title, args, kwargs)
            except UsageError as error:
                if not calls:
                    raise
                text = f"call {len(calls) + 1}: {error.message}"
                raise UsageError(text, error.hint) from error.__cause__
            calls.append(PackedCall(packed, packed_arguments, {}))
        return calls


def _check_call(
    function: Callable[..., Any],
    title: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Refuse what the function would not take, now and not when the job runs."""
    called = function
    while isinstance(called, partial):
        called = called.func
    if not isinstance(called, FunctionType | MethodType):
        return
    try:
        # What a decorator has made may take other arguments than what it has wrapped.
        known = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        known.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(
            f"`{title}` cannot be called like this: {error}",
            "a keyword that is no option of a job is the function's",
        ) from None


def _parameters(function: Callable[..., Any]) -> set[str]:
    """Return the parameters that a call may give, without those that are bound."""
    bound: set[str] = set()
    while isinstance(function, partial):
        bound |= function.keywords.keys()
        function = function.func
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return set()
    return set(known) - bound


_OPTIONS = frozenset(JobOptions.__annotations__)
