"""Links between pages lead somewhere."""

import re
from pathlib import Path

import pytest

from .pages import ROOT, all_pages

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.mark.parametrize(
    "page", all_pages(), ids=[str(page.relative_to(ROOT)) for page in all_pages()]
)
def test_every_relative_link_exists(page: Path) -> None:
    links = _LINK.findall(page.read_text())
    relative = [link for link in links if "://" not in link]
    broken = [link for link in relative if not _leads_somewhere(page, link)]
    assert not broken


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    return not anchor or anchor in _anchors(target.read_text())


def _anchors(text: str) -> set[str]:
    headings = [heading.lower() for heading in _HEADING.findall(text)]
    words = [re.sub(r"[^\w\s-]", "", heading) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in words}
