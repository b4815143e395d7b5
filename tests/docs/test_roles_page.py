"""The table on the page about tokens says what the table of routes says."""

from grass.api.app import ENDPOINTS
from grass.model.access import ROLES, Right

from .pages import ROOT

PAGE = (ROOT / "docs/how-to/tokens.md").read_text()

NEEDS: dict[str, tuple[Right, Right | None]] = {
    "look": (Right.READ, None),
    "enqueue": (Right.SUBMIT, None),
    "change jobs": (Right.OPERATE, Right.SUBMIT),
    "change machines": (Right.OPERATE, Right.WORK),
    "steer": (Right.OPERATE, None),
    "administer": (Right.ADMIN, None),
    "work": (Right.WORK, None),
    "lead": (Right.LEAD, None),
}
"""The rows, and what each needs: a right, and one that is enough for one's own."""
IN_WORDS = {(Right.READ, Right.WORK)}
"""What the page says beside the table."""


def shown() -> list[list[str]]:
    """Return the rows of the table of roles."""
    rows = [line.strip("|").split("|") for line in PAGE.splitlines() if line[:1] == "|"]
    return [[cell.strip().strip("`") for cell in row] for row in rows]


def cell(role: str, right: Right, own: Right | None) -> str:
    if right in ROLES[role]:
        return "yes"
    return "own" if own in ROLES[role] else ""


def test_every_role_has_a_column() -> None:
    assert set(shown()[0][1:]) == set(ROLES)


def test_the_cells_follow_from_the_rights_of_each_role() -> None:
    header, _ruler, *rows = shown()
    told = {row[0].partition(":")[0]: row[1:] for row in rows}
    assert told == {
        name: [cell(role, right, own) for role in header[1:]]
        for name, (right, own) in NEEDS.items()
    }


def test_every_route_is_in_a_row() -> None:
    needed = {(one.right, one.own) for one in ENDPOINTS if one.right is not None}
    assert needed - set(NEEDS.values()) == IN_WORDS
