"""What a link looks like from one side, whatever lies between the two.

Messages that are sent together arrive together and in order. A link that is closed, or
broken, takes what is sent and drops it: both sides settle the difference when they next
connect.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

Out_contra = TypeVar("Out_contra", contravariant=True)
In = TypeVar("In")


class Link(Protocol[Out_contra, In]):
    """One side of a link."""

    def listen(
        self, arrived: Callable[[list[In]], None], ended: Callable[[], None]
    ) -> None:
        """Have messages handed over from now on, also those that came before."""

    def send(self, message: Out_contra) -> None:
        """Hand a message to the other side; never waits."""

    def close(self, refusal: str = "") -> None:
        """End the link for both sides; may be called twice.

        Where the other side is refused, it is told why if there is a way to.
        """
