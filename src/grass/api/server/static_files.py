"""The dashboard's files as replies: compressed once, and sent only when they changed.

Every path without a dot is the page itself, which shows what the path names. A file is
read when it is first asked for, and again when it has changed on the disk.
"""

import gzip
import hashlib
import os
import re
from base64 import b64encode
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from grass.errors import NotFound

INDEX = "index.html"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
COMPRESSED = (".ico", ".png", ".woff2")
"""Files that are compressed by themselves."""
_PATH = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")
_IMPORT_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)
"""The one script that has to be in the page: modules are found by it."""

_FULL_LINES = re.compile(
    rb"^[ \t]*(?://[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*)$\n?", re.MULTILINE
)
_TYPES = re.compile(rb"/\*\* @(?:[^*\n]|\*(?!/))*\*/ ?")

POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self'; img-src 'self'"
    " data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action"
    " 'self'; base-uri 'none'; frame-ancestors 'none'"
)
ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every reply."""


class _File(NamedTuple):
    state: tuple[int, int]
    """When it was changed, and its size."""
    data: bytes
    packed: bytes | None
    headers: dict[str, str]


class StaticFiles:
    """The files of one folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[str, _File] = {}

    def reply(self, request: Request) -> Response:
        """Return the file that a path names, or that it has not changed."""
        file = self._file(_name(request.scope["path"]))
        if file.headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=file.headers)
        if file.packed is not None and _takes_gzip(request):
            headers = {**file.headers, "Content-Encoding": "gzip"}
            return Response(file.packed, headers=headers)
        return Response(file.data, headers=file.headers)

    def _file(self, name: str) -> _File:
        path = os.path.join(self._folder, name)
        try:
            found = os.stat(path)
            state = found.st_mtime_ns, found.st_size
            known = self._files.get(name)
            if known is None or known.state != state:
                known = self._files[name] = _read(path, state)
        except OSError:
            raise NotFound(f"there is no /{name} here") from None
        return known


def _name(path: str) -> str:
    """Return the file's name below the folder; nothing above it can be named."""
    if "." not in path:
        return INDEX
    if not _PATH.fullmatch(path):
        raise NotFound("there is no such file here")
    return path[1:]


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _read(path: str, state: tuple[int, int]) -> _File:
    with open(path, "rb") as file:
        data = file.read()
    ending = os.path.splitext(path)[1]
    if ending == ".mjs":
        data = without_comments(data)
    packed = None if ending in COMPRESSED else gzip.compress(data, mtime=0)
    headers = {
        **ISOLATION,
        "Content-Type": TYPES.get(ending, "application/octet-stream"),
        "Content-Security-Policy": POLICY.format(scripts=_import_map_hash(data)),
        "Cache-Control": "no-cache",
        "ETag": f'W/"{hashlib.sha256(data).hexdigest()[:32]}"',
        "Vary": "Accept-Encoding",
    }
    return _File(state, data, packed, headers)


def without_comments(module: bytes) -> bytes:
    """Leave out of a module what only readers and the type checker need.

    Comments that fill lines become empty lines, so that line numbers stay true. Of
    those inside a line only types are left out: `/** @type {Job} */`.
    """
    module = _FULL_LINES.sub(lambda it: b"\n" * it.group().count(b"\n"), module)
    return _TYPES.sub(b"", module)


def _import_map_hash(data: bytes) -> str:
    found = _IMPORT_MAP.search(data)
    if found is None:
        return ""
    digest = hashlib.sha256(found[1]).digest()
    return f" 'sha256-{b64encode(digest).decode()}'"
