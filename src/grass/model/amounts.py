"""Amounts: integers in ten-thousandths of a unit.

Ten times 0.1 is exactly 1, because Grass never adds decimals. They exist at the edges
only: this module turns what people write (`0.5`, `"8G"`) into an amount;
`model/amount_text.py` writes one. Requests are rounded up and capacities down, so that
rounding never oversubscribes a unit.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation

from grass.errors import UsageError
from grass.model.amount_text import BYTE_KINDS, WHOLE

LARGEST = 10**15 * WHOLE
"""Anything above is a typing error, and would not fit an int64 when summed."""

GIB = 2**30
LARGEST_SIZE = 2**63 - 1
"""In bytes; larger ones are cut to it and mean no limit."""

_SUFFIXES = {
    "": Decimal(1),
    "K": Decimal(2**10) / GIB,
    "M": Decimal(2**20) / GIB,
    "G": Decimal(1),
    "T": Decimal(2**10),
    "P": Decimal(2**20),
}


def request_amount(value: object, kind: str) -> int:
    """Read what a job asks of one kind; 0 is allowed and asks for nothing."""
    return _scaled(_decimal(value, kind), kind, ROUND_CEILING)


def capacity_amount(value: object, kind: str) -> int:
    """Read how much of one kind a unit has."""
    return _scaled(_decimal(value, kind), kind, ROUND_FLOOR)


def amount_of_bytes(size: int) -> int:
    """Return a number of bytes as an amount of GiB, rounded down."""
    return size * WHOLE // GIB


def bytes_of_amount(amount: int) -> int:
    """Return an amount of GiB as a number of bytes, rounded down."""
    return amount * GIB // WHOLE


def decimal_number(amount: int) -> int | float:
    """Return an amount as a JSON number; exact, since four decimals fit a float."""
    return amount // WHOLE if amount % WHOLE == 0 else amount / WHOLE


def size_bytes(text: str) -> int:
    """Read a size such as `10G` or `500M` as bytes; a bare number is bytes."""
    stripped = text.strip().upper().removesuffix("IB").removesuffix("B")
    suffix = stripped[-1:] if stripped[-1:].isalpha() else ""
    if suffix not in _SUFFIXES:
        raise UsageError(f"`{text}` is not a size", "write 500M, 10G or 1T")
    number = _plain_decimal(stripped.removesuffix(suffix))
    if number is None or not 0 <= number <= LARGEST:
        raise UsageError(f"`{text}` is not a size", "write 500M, 10G or 1T")
    factor = _SUFFIXES[suffix] * GIB if suffix else Decimal(1)
    return min(int(number * factor), LARGEST_SIZE)


def _decimal(value: object, kind: str) -> Decimal:
    if isinstance(value, bool):
        raise _not_a_number(value, kind)
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        # repr gives the shortest text that reads back, so 0.1 is a tenth here.
        return _finite(Decimal(repr(value)), value, kind)
    if isinstance(value, str) and kind in BYTE_KINDS:
        return _gibibytes(value, kind)
    raise _not_a_number(value, kind)


def _gibibytes(text: str, kind: str) -> Decimal:
    stripped = text.strip().upper().removesuffix("IB").removesuffix("B")
    suffix = stripped[-1:] if stripped[-1:].isalpha() else ""
    number = _plain_decimal(stripped.removesuffix(suffix))
    if number is None or suffix not in _SUFFIXES:
        raise _not_a_number(text, kind)
    if number.copy_abs() > LARGEST:
        raise _absurd(number, kind)
    return _finite(number * _SUFFIXES[suffix], text, kind)


def _plain_decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _finite(number: Decimal, value: object, kind: str) -> Decimal:
    if not number.is_finite():
        raise _not_a_number(value, kind)
    return number


def _scaled(number: Decimal, kind: str, rounding: str) -> int:
    if number < 0:
        raise UsageError(f"{kind} is {_shown(number)}", "amounts cannot be negative")
    if number * WHOLE > LARGEST:
        raise _absurd(number, kind)
    return int((number * WHOLE).to_integral_value(rounding=rounding))


def _absurd(number: Decimal, kind: str) -> UsageError:
    return UsageError(f"{kind} is {_shown(number)}", "no machine has that much")


def _not_a_number(value: object, kind: str) -> UsageError:
    sizes = ' or a size such as "8G"' if kind in BYTE_KINDS else ""
    return UsageError(f"{kind} must be a number{sizes}, not {_shown(value)}")


def _shown(value: object) -> str:
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):
        # Python refuses to format an integer of many thousand digits.
        return f"this {type(value).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."
