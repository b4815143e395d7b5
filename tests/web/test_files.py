"""The dashboard's files, as they lie in the package: no browser is needed."""

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from grass.api.server.static_files import without_comments
from grass.web import STATIC

FILES = Path(STATIC)
VENDOR = FILES / "vendor"
STATIC_IMPORT = re.compile(r'(?:from|import)\s*"(\.[^"]+)"')
SERVED = (".css", ".html", ".mjs", ".svg")
MOST_BYTES = 150_000
"""Of the whole page, compressed."""


def hashes() -> dict[str, str]:
    told = json.loads((VENDOR / "hashes.json").read_text())
    return dict(told["sha256"])


def test_vendored_files_are_those_that_were_fetched() -> None:
    found = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in VENDOR.iterdir()
        if file.name != "hashes.json"
    }
    assert found == hashes()


def test_every_vendored_package_has_its_licence_and_version() -> None:
    pinned = json.loads(Path("web-tools/package.json").read_text())["devDependencies"]
    told = json.loads((VENDOR / "hashes.json").read_text())["packages"]
    assert told == {name: pinned[name] for name in told}
    for name in told:
        plain = name.removeprefix("@").replace("/", "-")
        assert (VENDOR / f"LICENSE.{plain}").is_file()


@pytest.mark.parametrize(
    "module", sorted(FILES.glob("app/**/*.mjs")), ids=lambda path: path.name
)
def test_imports_name_files_that_exist(module: Path) -> None:
    code = re.sub(r"/\*.*?\*/", "", module.read_text(), flags=re.DOTALL)
    names = re.findall(r'(?:from|import\()\s*"([^"]+)"', code)
    for name in names:
        if not name.startswith("."):
            continue
        assert (module.parent / name).resolve().is_file(), name


def imported(module: Path, found: set[Path]) -> set[Path]:
    """Return a module and all that it imports, but for what is imported on use."""
    if module in found:
        return found
    found.add(module)
    code = re.sub(r"/\*.*?\*/", "", module.read_text(), flags=re.DOTALL)
    for name in STATIC_IMPORT.findall(code):
        imported((module.parent / name).resolve(), found)
    return found


def test_the_page_names_all_modules_that_it_begins_with() -> None:
    """A browser then fetches them together, not one after the other."""
    folder = FILES.resolve()
    main = folder / "app" / "main.mjs"
    wanted = {f"/{one.relative_to(folder)}" for one in imported(main, set())}
    page = (FILES / "index.html").read_text()
    told = re.findall(r'rel="modulepreload" href="([^"]+)"', page)
    assert sorted(told) == sorted(wanted - {"/app/main.mjs"})


def sent(file: Path) -> bytes:
    """Return a file as the daemon sends it."""
    data = file.read_bytes()
    return without_comments(data) if file.suffix == ".mjs" else data


def test_the_whole_page_is_small() -> None:
    served = [one for one in FILES.rglob("*") if one.suffix in SERVED]
    sizes = {one.name: len(gzip.compress(sent(one))) for one in served}
    assert sum(sizes.values()) < MOST_BYTES, sizes


@pytest.mark.parametrize(
    "sheet",
    [one for one in sorted(FILES.glob("style/*.css")) if one.name != "tokens.css"],
    ids=lambda path: path.name,
)
def test_colours_are_named_in_one_sheet(sheet: Path) -> None:
    rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(", rules) == []


CLASSES = re.compile(r'class=(?:"([^"]*)"|\$\{`([^`]*)`\})')


def used_classes(module: Path) -> set[str]:
    """Return the classes of elements that a module writes out."""
    texts = [plain or made for plain, made in CLASSES.findall(module.read_text())]
    words = [
        word for text in texts for word in re.sub(r"\$\{[^}]*\}", " ", text).split()
    ]
    return {word for word in words if re.fullmatch(r"[a-z][a-z-]*[a-z]", word)}


def styled_classes(sheet: Path) -> set[str]:
    return set(re.findall(r"\.([a-z][\w-]*)", sheet.read_text()))


@pytest.mark.parametrize(
    "view", re.findall(r'id: "(\w+)"', (FILES / "app/views.mjs").read_text())
)
def test_a_view_loads_the_style_of_all_that_it_shows(view: str) -> None:
    modules = imported(FILES.resolve() / f"app/views/{view}.mjs", set())
    page = (FILES / "index.html").read_text()
    loaded = {*re.findall(r"style/(\w+)\.css", page), view}
    for module in modules:
        loaded |= set(re.findall(r'loadStyle\("(\w+)"\)', module.read_text()))
    elsewhere, here = set[str](), set[str]()
    for sheet in FILES.glob("style/*.css"):
        found = here if sheet.stem in loaded else elsewhere
        found |= styled_classes(sheet)
    used = {one for module in modules for one in used_classes(module)}
    assert used & (elsewhere - here) == set()
