"""Amounts as people write them: `0.5` of a gpu, `23.5G` of memory.

An amount is an integer in ten-thousandths of a unit (`model/amounts.py`). Kinds of
memory are counted in GiB and written as sizes. A size is rounded, so several that are
told in one sentence are written together: equal texts always mean equal amounts. This
module imports nothing, because commands that only print need no parser of amounts.
"""

WHOLE = 10_000
"""One unit."""

BYTE_KINDS = frozenset({"ram", "vram"})
"""Kinds measured in GiB: a bare number is GiB, a size such as `8G` is understood."""

_STEP = 1024
_LETTERS = "MGTP"
_MOST_FINER = 4
"""How many more decimals are tried before sizes are written exactly."""


def decimal_text(amount: int) -> str:
    """Return an amount as a decimal: `1`, `0.5`, `23.4375`."""
    whole, rest = divmod(amount, WHOLE)
    return str(whole) if rest == 0 else f"{whole}.{rest:04d}".rstrip("0")


def amount_text(amount: int, kind: str) -> str:
    """Return an amount of a kind: `0.5` of gpu, `500M` of ram."""
    return _size(amount, 0) if kind in BYTE_KINDS else decimal_text(amount)


def amount_texts(kind: str, *amounts: int) -> list[str]:
    """Return several amounts of a kind; those that differ are written differently."""
    if kind not in BYTE_KINDS:
        return [decimal_text(amount) for amount in amounts]
    distinct = len(set(amounts))
    for finer in range(_MOST_FINER + 1):
        texts = [_size(amount, finer) for amount in amounts]
        if len(set(texts)) == distinct:
            return texts
    return [f"{decimal_text(amount)}G" for amount in amounts]


def size_text(size: int) -> str:
    """Return a number of bytes with its unit: `8 GiB`, `11.2 GiB`, `500 MiB`."""
    gib = size / 2**30
    if gib < 1:
        return f"{size / 2**20:.0f} MiB"
    text = f"{gib:.1f}" if gib < _STEP else f"{gib:.0f}"
    return f"{text.removesuffix('.0')} GiB"


def _size(amount: int, finer: int) -> str:
    """Write a size with the digits that matter, and some more where they do."""
    if amount == 0:
        return "0"
    value, place = amount / WHOLE, 1
    if value < 1:
        value, place = value * _STEP, 0
    text = _digits(value, place, finer)
    while float(text) >= _STEP and place + 1 < len(_LETTERS):
        value, place = value / _STEP, place + 1
        text = _digits(value, place, finer)
    return text + _LETTERS[place]


def _digits(value: float, place: int, finer: int) -> str:
    """Write a number of MiB with at most one decimal, and of GiB with one or two."""
    decimals = finer + (1 if value < 10 else 0) + (1 if place else 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
