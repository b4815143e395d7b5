"""JSON bodies of requests and replies, and query parameters.

Text may hold bytes that are not UTF-8, escaped as lone surrogates, which msgspec's own
decoder refuses: then the standard library reads the JSON and msgspec only checks it.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NoReturn, TypeVar

import msgspec
from starlette.datastructures import QueryParams

from grass.errors import UsageError
from grass.model import selectors
from grass.model.jobs.lifecycle import ENDED, UNFINISHED, JobState
from grass.queries.selection import Words, read_words
from grass.store.interface import JobFilter, Order, Place, Sorting, SortKey

T = TypeVar("T")

LARGEST_NUMBER = 2**62
DISPLAY = "display"
"""The order in which people look at jobs."""


def read_body(data: bytes | bytearray, body: type[T]) -> T:
    """Read a request's body; the error names the wrong field."""
    try:
        return msgspec.json.decode(data or b"{}", type=body)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request is not understood: {error}") from None
    except (msgspec.DecodeError, UnicodeError):
        pass
    except RecursionError:
        raise _too_deep() from None
    try:
        return msgspec.convert(json.loads(data, parse_constant=_refuse), body)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request is not understood: {error}") from None
    except ValueError as error:
        raise UsageError(f"the request is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> UsageError:
    return UsageError("the request is nested too deep")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def job_filter(query: QueryParams) -> JobFilter:
    """Read the filter of a page of jobs."""
    return JobFilter(
        states=_states(query.getlist("state")),
        queue=query.get("queue"),
        project=query.get("project"),
        name=query.get("name"),
        owner=query.get("owner"),
        selection=selector_words(query).selection,
        before=number(query.get("before"), 0) or None,
        after=number(query.get("after"), 0) or None,
        order=_order(query.get("order", Order.NEWEST)),
    )


def number(text: str | None, default: int, largest: int = LARGEST_NUMBER) -> int:
    """Read a number from 0 on."""
    if text is None:
        return default
    if not text.isdecimal() or len(text) > len(str(largest)) or int(text) > largest:
        raise UsageError(f"`{text}` is not a number up to {largest}")
    return int(text)


def seconds(text: str | None, default: float, longest: float) -> float:
    """Read a duration from 0 on."""
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= longest:
        raise UsageError(f"`{text[:40]}` is not a number of seconds")
    return value


def switch(text: str | None) -> bool:
    """Read a boolean."""
    return text in ("1", "true")


def selector_words(query: QueryParams) -> Words:
    """Read the selectors of a page of jobs; there need not be any."""
    texts, union = query.getlist("select"), switch(query.get("any"))
    return read_words(texts, union=union) if texts else Words()


def _states(texts: list[str]) -> tuple[JobState, ...]:
    states: list[JobState] = []
    for text in texts:
        if text == "unfinished":
            states += sorted(UNFINISHED)
        elif text == "ended":
            states += sorted(ENDED)
        else:
            states += [s for s in [selectors.read(f"state:{text}").state] if s]
    return tuple(states)


def _order(text: str) -> Order:
    if text == DISPLAY:
        return Order.NEXT
    if text.removeprefix("-") in tuple(SortKey):
        return Order.OLDEST
    if text not in (Order.NEWEST, Order.OLDEST):
        known = ", ".join((DISPLAY, Order.NEWEST, Order.OLDEST, *SortKey))
        raise UsageError(f"`{text}` is not an order", f"use one of {known}")
    return Order(text)


def sorting(query: QueryParams) -> Sorting | None:
    """Read the column that a page is sorted by; None: it is in another order."""
    text = query.get("order", "")
    if text.removeprefix("-") not in tuple(SortKey):
        return None
    key = SortKey(text.removeprefix("-"))
    place = _place(query.get("cursor"), key)
    return Sorting(key, text.startswith("-"), place)


def cursor_of(place: Place | None) -> str | None:
    """Return where a page ended as text, which `cursor` of the next one repeats."""
    if place is None:
        return None
    return urlsafe_b64encode(msgspec.json.encode(place)).decode()


def _place(text: str | None, key: SortKey) -> Place | None:
    if text is None:
        return None
    of_names = key is SortKey.NAME
    try:
        data = urlsafe_b64decode(text)
        value, number = msgspec.json.decode(data, type=tuple[int | str | None, int])
    except (ValueError, msgspec.DecodeError):
        value, number = None, 0
    numbers = [number] if value is None or isinstance(value, str) else [number, value]
    too_large = any(abs(one) > LARGEST_NUMBER for one in numbers)
    if number < 1 or too_large or isinstance(value, str) != of_names:
        raise UsageError(
            f"`{text}` is not where a page in this order ended", "begin anew without it"
        )
    return value, number
