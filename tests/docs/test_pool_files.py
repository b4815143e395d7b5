"""Files of pools in the documentation are read as `grass pool add` reads them."""

import re
from pathlib import Path

import pytest

from grass.cli.parsing.options import read
from grass.cli.parsing.pool_options import ADDING, pool_body

from .pages import ROOT, all_pages, blocks

_NAMED = re.compile(r"# ([\w-]+\.toml)\n")
_FILES = {
    f"{page.relative_to(ROOT)}: {named[1]}": block
    for page in all_pages()
    for block in blocks(page.read_text(), "toml")
    if (named := _NAMED.match(block)) and "max_workers" in block
}


def test_the_pages_have_files() -> None:
    names = {name.partition(": ")[2] for name in _FILES}
    assert {"uni.toml", "pbs.toml", "wrapped.toml", "sge.toml", "condor.toml"} <= names


@pytest.mark.parametrize("name", _FILES)
def test_a_file_on_a_page_makes_a_pool(name: str, tmp_path: Path) -> None:
    path = tmp_path / "pool.toml"
    path.write_text(_FILES[name])
    values, _ = read(ADDING, [f"--file={path}"])
    assert pool_body(values, "uni")["max_workers"] > 0
