"""Input that nobody should send: arbitrary, and valid but for a slip."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

ODD = st.sampled_from(
    [
        "\0",
        "\n",
        "\r",
        "\u2028",
        "\ud800",
        "\udcff",
        "\ufeff",
        "\u0663",
        "0x" + "f" * 4000,
        "9" * 5000,
        "1e999999999",
        "-",
        "_",
        "NaN",
        "Infinity",
        "{" * 100,
        "[" * 100,
        "(" * 300,
        "a{1000}" * 20,
        "%s",
        "${x}",
        "{gpu}",
    ]
)
"""Pieces that have upset decoders before: of grass, or of others."""

LETTERS = st.characters(codec=None, categories=None)
"""Every code point there is, lone surrogates included."""

any_text = st.one_of(
    st.text(LETTERS, max_size=40),
    st.text(st.sampled_from("{}[]():,-~@%'\"\\/*.0123456789eExgpu \n"), max_size=40),
    ODD,
)


@st.composite
def slipped(draw: st.DrawFn, seeds: Sequence[str]) -> str:
    """Take something valid, and cut, double or replace pieces of it."""
    text = draw(st.sampled_from(list(seeds)))
    for _ in range(draw(st.integers(0, 3))):
        first = draw(st.integers(0, len(text)))
        last = draw(st.integers(first, min(len(text), first + 8)))
        cut = text[first:last]
        piece = draw(st.one_of(st.just(""), st.just(cut * 2), any_text))
        text = text[:first] + piece + text[last:]
    return text


def texts(*seeds: str) -> st.SearchStrategy[str]:
    """Give arbitrary text, and text that is nearly one of these."""
    return st.one_of(any_text, slipped(seeds))


@st.composite
def slipped_bytes(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Take something valid, and cut, double or replace bytes of it."""
    data = draw(st.sampled_from(list(seeds)))
    for _ in range(draw(st.integers(0, 3))):
        first = draw(st.integers(0, len(data)))
        last = draw(st.integers(first, min(len(data), first + 8)))
        cut = data[first:last]
        piece = draw(st.one_of(st.just(b""), st.just(cut * 2), st.binary(max_size=8)))
        data = data[:first] + piece + data[last:]
    return data


numbers = st.one_of(
    st.integers(-3, 70),
    st.integers(),
    st.sampled_from([2**31, 2**53, 2**63, -(2**63) - 1, 2**64, 10**400]),
    st.floats(),
    st.sampled_from([1e308, 5e-324, -0.0]),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, any_text)


def nested(depth: int) -> object:
    """Give lists within lists."""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


values: st.SearchStrategy[Any] = st.one_of(
    st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(any_text, inner, max_size=3)
        ),
        max_leaves=6,
    ),
    st.just(nested(200)),
)
"""Anything that JSON can say, and a little more."""


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [place]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _places(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _places(inner, (*place, index))
    return found


def _put(value: Any, place: tuple[Any, ...], piece: Any) -> Any:
    if not place:
        return piece
    first, *rest = place
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[first] = _put(value[first], tuple(rest), piece)
    return copy


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


whole_numbers = st.one_of(
    st.integers(-2, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**63, -1])
)


def _alike(value: Any) -> st.SearchStrategy[Any]:
    """Give something else of the same type, which a decoder would let through."""
    if isinstance(value, bool):
        return st.just(not value)
    if isinstance(value, int):
        return whole_numbers
    if isinstance(value, float):
        return st.floats()
    if isinstance(value, str):
        return texts(value)
    if isinstance(value, dict) and value:
        inner = st.one_of(*(st.just(one) for one in value.values()))
        return st.dictionaries(st.one_of(any_text, st.sampled_from("01")), inner)
    if isinstance(value, list) and value:
        return st.just(value * 2)
    return values


@st.composite
def slipped_values(draw: st.DrawFn, seeds: Sequence[Any]) -> Any:
    """Take a valid document and put something else in one or two of its places."""
    value = draw(st.sampled_from(list(seeds)))
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from(_places(value)))
        alike = _alike(_at(value, place))
        value = _put(value, place, draw(st.one_of(alike, alike, values)))
    return value
