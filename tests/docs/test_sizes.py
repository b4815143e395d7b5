"""No module outgrows its reader."""

from .pages import ROOT

MAX_LINES = 600


def test_no_module_is_longer_than_six_hundred_lines() -> None:
    modules = (ROOT / "src").glob("**/*.py")
    sizes = {str(path): len(path.read_text().splitlines()) for path in modules}
    assert {name: size for name, size in sizes.items() if size > MAX_LINES} == {}
