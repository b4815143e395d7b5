"""The web server of a daemon: when it listens, where, and with which key.

The address, the key that signs cookies and the sessions that were ended are kept in the
state directory, so that after a restart the page is where it was and browsers stay
logged in, or out. `close` forgets all: no cookie is valid any more. What serves is
imported when it is needed; most daemons never serve a browser.

On loopback a link of `grass web` logs a browser in, as the daemon's own user. Beyond it
there is TLS, with the broker's certificate, and a person logs in with a token.
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
from grass.broker.shell.service import Broker
from grass.client.private_files import replace_private
from grass.config import Home
from grass.daemon.hosting import Hosting
from grass.errors import GrassError, Refused
from grass.event_log import EventLog
from grass.model.addresses import Address, is_loopback, read_address

if TYPE_CHECKING:
    from grass.api.server.tls_web_server import TlsWebServer
    from grass.api.server.unix_server import ApiServer
    from grass.api.server.web_app import WebApp
    from grass.api.server.web_server import WebServer
    from grass.tls.server import ServerIdentity

log = EventLog("grass.daemon")

HOST, PORT = "127.0.0.1", 4004
ANY_PORT = 0
"""Any port is as good as another, so it is the present one if there is one."""
KEY_BYTES = 32
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 -- what a user may ask for


class _Kept(NamedTuple):
    """What is kept in the state directory."""

    address: Address
    key: bytes
    ended: dict[str, int]
    """The ids of sessions that were ended, with when their cookies are too old."""


class WebHost:
    """Opens and closes the web server of one daemon."""

    def __init__(
        self,
        home: Home,
        hosting: Hosting,
        broker: Broker,
        identity: "ServerIdentity | None",
    ) -> None:
        """Prepare; `identity` is the broker's, if it listens for other machines."""
        self._home = home
        self._hosting = hosting
        self._broker = broker
        self._identity = identity
        self._server: ApiServer | None = None
        self._kept: _Kept | None = None
        self._app: WebApp | None = None
        self._web: WebServer | TlsWebServer | None = None

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
        wanted = Address(
            before.host if host is None else read_address(host).host,
            before.port if port is None else port,
        )
        if self._web is not None and wanted == before._replace(port=ANY_PORT):
            wanted = before
        if self._web is None or wanted != before:
            if kept is None:
                kept = _Kept(wanted, secrets.token_bytes(KEY_BYTES), {})
            await self._listen(kept._replace(address=wanted))
        return self._link(actor, role)

    async def close(self) -> bool:
        """Stop listening and forget the key; return whether it did listen."""
        was_open = self._web is not None
        await self.stop()
        self._kept = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._home.web)
            was_open = True
        return was_open

    async def stop(self) -> None:
        """Stop listening until the next daemon."""
        web, self._web = self._web, None
        if web is not None:
            await web.close()

    def _link(self, actor: str, role: str) -> WebLink:
        assert self._kept is not None
        assert self._app is not None
        address = self._kept.address
        if is_loopback(address.host):
            token = self._app.sessions.new_one_time(actor, role, time.time())
            return WebLink(f"http://{address}/login?token={token}", token, *address)
        assert self._identity is not None
        shown = address._replace(host=self._names(address)[0])
        return WebLink(
            f"https://{shown}/", None, *shown, fingerprint=self._identity.fingerprint
        )

    async def _listen(self, wanted: _Kept) -> None:
        """Listen at an address, and no more at the one before."""
        if self._kept is not None and self._kept.address.port == wanted.address.port:
            await self.stop()
        listeners = page_sockets(wanted.address)
        address = wanted.address._replace(port=listeners[0].getsockname()[1])
        kept = wanted._replace(address=address)
        app, web = self._serving(kept)
        await web.listen(listeners)
        await self.stop()
        self._app, self._web, self._kept = app, web, kept
        _write(self._home.web, kept)
        log.info("web.listening", address=address)

    def _serving(self, kept: _Kept) -> "tuple[WebApp, WebServer | TlsWebServer]":
        """Make what serves at an address."""
        from grass.api.access.web_sessions import Sessions
        from grass.api.server import web_apps
        from grass.api.server.web_server import WebServer

        server = self._server
        sessions = Sessions(kept.key, kept.ended, self._keep_ended)
        assert server is not None
        host = kept.address.host
        if is_loopback(host):
            app = web_apps.on_loopback(server.app, sessions, host)
            return app, WebServer(app, server.server_state)
        from grass.api.server.tls_web_server import TlsWebServer

        names = self._names(kept.address)
        app = web_apps.beyond_loopback(server.app, sessions, names, self._broker)
        return app, TlsWebServer(server, self._own_identity().context, app)

    def _keep_ended(self, ended: dict[str, int]) -> None:
        assert self._kept is not None
        self._kept = self._kept._replace(ended=ended)
        _write(self._home.web, self._kept)

    def _own_identity(self) -> "ServerIdentity":
        if self._identity is None:
            from grass.tls.server import identity

            self._identity = identity(self._home.folder, None, lambda: None)
        return self._identity

    def _names(self, address: Address) -> list[str]:
        """Return by which names the page is found, that to show first."""
        told = self._hosting.advertise
        advertised = [] if told is None else [read_address(told).host]
        host = [] if address.host in EVERYWHERE else [address.host]
        certified = self._own_identity().names
        return [*host, *advertised, *certified, socket.gethostname(), "localhost"]


def page_sockets(address: Address) -> list[socket.socket]:
    """Listen at an address, or say what to do."""
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
        address, key = Address(told["host"], told["port"]), bytes.fromhex(told["key"])
        return _Kept(address, key, dict(told.get("ended", {})))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("web.unreadable", path=path, error=error)
        return None


def _write(path: str, kept: _Kept) -> None:
    key, ended = kept.key.hex(), kept.ended
    document = {**kept.address._asdict(), "key": key, "ended": ended}
    replace_private(path, json.dumps(document))
