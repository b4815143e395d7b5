"""The dashboard's files as replies: names, compression, and what has not changed."""

import gzip
import hashlib
import os
import subprocess
import tomllib
from base64 import b64encode
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from grass.api.server.static_files import StaticFiles, without_comments
from grass.errors import NotFound
from grass.web import STATIC


def get(files: StaticFiles, path: str, **headers: str) -> Response:
    pairs = [
        (name.replace("_", "-").encode(), value.encode())
        for name, value in headers.items()
    ]
    return files.reply(Request({"type": "http", "path": path, "headers": pairs}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "app").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Grass</title>")
    (folder / "app" / "main.mjs").write_text("export const one = 1;\n" * 100)
    (folder / "app" / "icon.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/42", "/timeline", "/a/b/c"])
def test_a_path_without_a_dot_is_the_page(folder: Path, path: str) -> None:
    page = get(StaticFiles(str(folder)), path)
    assert page.body == (folder / "index.html").read_bytes()
    assert page.headers["content-type"] == "text/html; charset=utf-8"


OUTSIDE = [
    "/../secret.txt",
    "/app/../../secret.txt",
    "/%2e%2e/secret.txt",
    "/app/./main.mjs",
    "//etc/passwd.txt",
    "/app//main.mjs",
    "/.git/config",
    "/app/.hidden.mjs",
    "/app\\..\\secret.txt",
    "/app/main.mjs\0",
    "/app/nothing.mjs",
    "/app.d",
    "/app/main.mjs/",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_else_is_found(folder: Path, path: str) -> None:
    with pytest.raises(NotFound):
        get(StaticFiles(str(folder)), path)


def test_a_file_is_compressed_for_who_takes_that(folder: Path) -> None:
    files, text = StaticFiles(str(folder)), (folder / "app/main.mjs").read_bytes()
    packed = get(files, "/app/main.mjs", accept_encoding="gzip, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(bytes(packed.body)) == text
    assert len(packed.body) < len(text) / 5
    assert packed.headers["content-type"] == "text/javascript; charset=utf-8"
    plain = get(files, "/app/main.mjs")
    assert (plain.body, "content-encoding" in plain.headers) == (text, False)
    image = get(files, "/app/icon.png", accept_encoding="gzip")
    assert (image.body, "content-encoding" in image.headers) == (b"\x89PNG", False)


def test_a_file_that_has_not_changed_is_not_sent_again(folder: Path) -> None:
    files, path = StaticFiles(str(folder)), folder / "app/main.mjs"
    tag = get(files, "/app/main.mjs").headers["etag"]
    assert get(files, "/app/main.mjs", if_none_match=tag).status_code == 304
    path.write_text("export const one = 2;\n")
    os.utime(path, ns=(1, 1))
    changed = get(files, "/app/main.mjs", if_none_match=tag)
    assert (changed.status_code, changed.body) == (200, path.read_bytes())


def test_no_script_runs_but_files_and_the_map_of_modules(folder: Path) -> None:
    page = get(StaticFiles(str(folder)), "/")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    modules = '{"imports":{"preact":"/vendor/preact.mjs"}}'
    (folder / "index.html").write_text(
        f'<script type="importmap">{modules}</script><script>alert(1)</script>'
    )
    policy = get(StaticFiles(str(folder)), "/").headers["content-security-policy"]
    digest = b64encode(hashlib.sha256(modules.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy


def test_every_reply_keeps_to_itself(folder: Path) -> None:
    for path in ("/", "/app/main.mjs", "/app/icon.png"):
        headers = get(StaticFiles(str(folder)), path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_no_file_of_the_page_is_left_out_of_the_wheel() -> None:
    root = Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/grass"]}
    # What git ignores is left out, too.
    files = [str(path) for path in Path(STATIC).rglob("*") if path.is_file()]
    ignored = subprocess.run(
        ["git", "check-ignore", *files], cwd=root, capture_output=True, text=True
    )
    assert ignored.stdout == ""


def test_the_page_is_there() -> None:
    page = get(StaticFiles(STATIC), "/")
    assert page.status_code == 200
    assert bytes(page.body).startswith(b"<!doctype html>")


def test_comments_are_not_sent_and_lines_keep_their_numbers() -> None:
    module = (
        b"// why\nconst a = 1; // stays\n/**\n * @param {x} y\n */\n"
        b"let b = (/** @type {T} */ c) => c;\n"
    )
    sent = without_comments(module)
    assert sent == b"\nconst a = 1; // stays\n\n\n\nlet b = (c) => c;\n"
