"""The version of the link: neighbouring ones understand each other."""

LINK_VERSION = 1
"""Neighbouring versions understand each other; any other is refused."""
UNSAID_VERSION = 1
"""The version of a peer that does not send one, as 0.1 did not; never changed."""


def version_problem(theirs: int, here: str, there: str) -> str | None:
    """Return in one line why two versions of the link do not work together."""
    if abs(theirs - LINK_VERSION) <= 1:
        return None
    return (
        f"this {here} speaks version {LINK_VERSION} of the link, the {there} version"
        f" {theirs}: install the same grass on both"
    )
