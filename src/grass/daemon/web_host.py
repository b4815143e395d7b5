"""The web entrance of a daemon: when it listens, where, and with which key.

The address and the key that signs cookies are kept in the state directory, so that
after a restart the page is where it was and browsers stay logged in. `close` forgets
both: no cookie is valid any more. What serves is imported when it is needed; most
daemons never serve a browser.
"""

import contextlib
import json
import os
import secrets
import socket
import time
from typing import TYPE_CHECKING, NamedTuple

from grass.api.context import WebLink
from grass.api.server.listen_sockets import bound
from grass.client.private_files import replace_private
from grass.config import Home
from grass.errors import GrassError, Refused, UsageError
from grass.event_log import EventLog
from grass.model.addresses import HIGHEST_PORT, Address, is_loopback, read_address

if TYPE_CHECKING:
    from grass.api.server.unix_server import ApiServer
    from grass.api.server.web_server import WebServer

log = EventLog("grass.daemon")

HOST, PORT = "127.0.0.1", 4004
KEY_BYTES = 32


class _Kept(NamedTuple):
    """What is kept in the state directory."""

    address: Address
    key: bytes


class WebHost:
    """Opens and closes the web entrance of one daemon."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._server: ApiServer | None = None
        self._kept: _Kept | None = None
        self._web: WebServer | None = None

    async def resume(self, server: "ApiServer") -> None:
        """Listen where the daemon before did, if it did."""
        self._server = server
        kept = _read(self._home.web)
        if kept is None:
            return
        try:
            await self._listen(kept)
        except GrassError as error:
            log.warning("web.failed", address=kept.address, error=error)

    async def open(
        self, host: str | None, port: int | None, actor: str, role: str
    ) -> WebLink:
        """Listen, elsewhere if that is asked for; return a link to log in with."""
        kept = self._kept or _read(self._home.web)
        before = Address(HOST, PORT) if kept is None else kept.address
        address = _address(before, host, port)
        if self._web is None or address != before:
            key = secrets.token_bytes(KEY_BYTES) if kept is None else kept.key
            await self._listen(_Kept(address, key))
        assert self._kept is not None
        token = self._sessions.new_one_time(actor, role, time.time())
        where = self._kept.address
        return WebLink(f"http://{where}/login?token={token}", token, *where)

    async def close(self) -> bool:
        """Stop listening and forget the key; return whether it did listen."""
        was_open = self._web is not None
        self.stop()
        self._kept = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._home.web)
            was_open = True
        return was_open

    def stop(self) -> None:
        """Stop listening until the next daemon."""
        if self._web is not None:
            self._web.close()
            self._web = None

    async def _listen(self, wanted: _Kept) -> None:
        """Listen at an address, then no more at the one before."""
        from grass.api.access.browser_checks import LOOPBACK, BrowserChecks
        from grass.api.access.web_sessions import Sessions, principal_of
        from grass.api.server.static_files import StaticFiles
        from grass.api.server.web_app import WebApp
        from grass.api.server.web_server import WebServer
        from grass.web import STATIC

        assert self._server is not None
        if self._kept is not None and self._kept.address.port == wanted.address.port:
            self.stop()
        listeners = _bound(wanted.address)
        address = wanted.address._replace(port=listeners[0].getsockname()[1])
        self._sessions = Sessions(wanted.key)
        app = WebApp(
            self._server.app,
            self._sessions,
            BrowserChecks("http", LOOPBACK),
            StaticFiles(STATIC),
            lambda _request, session: principal_of(session, None),
        )
        web = WebServer(app, self._server.server_state)
        await web.listen(listeners)
        self.stop()
        self._web, self._kept = web, _Kept(address, wanted.key)
        _write(self._home.web, self._kept)
        log.info("web.listening", address=address)


def _address(before: Address, host: str | None, port: int | None) -> Address:
    if host is not None:
        read_address(host)
    if port is not None and not 0 <= port <= HIGHEST_PORT:
        raise UsageError(f"--port is {port}", f"give 0 to {HIGHEST_PORT}")
    return Address(
        before.host if host is None else host, before.port if port is None else port
    )


def _bound(address: Address) -> list[socket.socket]:
    """Listen at an address, or say what to do."""
    if not is_loopback(address.host):
        raise Refused(f"{address.host} is not on loopback", "leave --host out")
    try:
        return bound(address)
    except Refused as refusal:
        why = refusal.message.partition(": ")[2].lower()
        raise Refused(
            f"the page cannot be served at {address}: {why}",
            "`grass web --port 0` takes any port that is free",
        ) from None


def _read(path: str) -> _Kept | None:
    """Read what was kept; None: nothing, or nothing that can be used."""
    try:
        with open(path, "rb") as file:
            told = json.load(file)
        return _Kept(Address(told["host"], told["port"]), bytes.fromhex(told["key"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("web.unreadable", path=path, error=error)
        return None


def _write(path: str, kept: _Kept) -> None:
    document = {**kept.address._asdict(), "key": kept.key.hex()}
    replace_private(path, json.dumps(document))
