"""The reference page says what the docstrings say."""

from grass.tasks import reference
from tests.docs.pages import ROOT


def test_the_page_is_made_from_the_docstrings() -> None:
    page = (ROOT / "docs/reference/python-tasks.md").read_text()
    hint = "python -m grass.tasks.reference > docs/reference/python-tasks.md"
    assert page == reference.text(), hint
