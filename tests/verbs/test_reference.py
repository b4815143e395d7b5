"""The reference page says what the docstrings say."""

from grass.verbs import reference
from tests.docs.pages import ROOT


def test_the_page_is_made_from_the_docstrings() -> None:
    page = (ROOT / "docs/reference/python.md").read_text()
    hint = "python -m grass.verbs.reference > docs/reference/python.md"
    assert page == reference.text(), hint
