"""Browsers: one that calls a web application without a network, and one with."""

import asyncio
import http.client
import json
import ssl
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message

from grass.tls.pins import client_context
from tests.support.patience import PATIENCE_S

HOST = "127.0.0.1:4004"
ORIGIN = f"http://{HOST}"
OF_THE_PAGE = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
"""What a browser says of a request that the page itself makes."""
A_LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
"""What a browser says when a person goes to a page."""


Headers = Mapping[str, str] | list[tuple[str, str]]
"""A list, where one of them is sent twice."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def cookie(self) -> str:
        """The cookie that was set, as a browser sends it back."""
        [(name, one)] = SimpleCookie(self.headers["set-cookie"]).items()
        return f"{name}={one.value}"


async def ask(
    app: ASGIApp,
    method: str,
    path: str,
    headers: Headers,
    body: bytes = b"",
    state: Mapping[str, object] | None = None,
) -> Answer:
    """Send a request straight into a web application."""
    pairs = headers if isinstance(headers, list) else list(headers.items())
    route, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": route,
        "raw_path": route.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
        "state": state or {},
    }
    sent: list[Message] = []
    asked = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if asked:
            return asked.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def answer(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, answer)
    told = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return Answer(
        sent[0]["status"], told, b"".join(one.get("body", b"") for one in sent[1:])
    )


class Browser:
    """A browser with a cookie, over the network."""

    def __init__(self, url: str) -> None:
        """Know where a page is; the rest of the address is left out."""
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._place = parts.hostname or "", parts.port
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = client_context()
        self.cookie = ""

    def follow(self, link: str) -> Answer:
        """Go to the link that `grass web` has printed."""
        parts = urlsplit(link)
        return self._keep(self.ask("GET", f"{parts.path}?{parts.query}", A_LINK))

    def log_in(self, token: str) -> Answer:
        """Send the form for a token."""
        form = {"content-type": "application/x-www-form-urlencoded"}
        return self._keep(self.ask("POST", "/login", form, f"token={token}".encode()))

    def _keep(self, answer: Answer) -> Answer:
        if "set-cookie" in answer.headers:
            self.cookie = answer.cookie
        return answer

    def get(self, path: str) -> Answer:
        return self.ask("GET", path, OF_THE_PAGE)

    def post(self, path: str, body: object) -> Answer:
        json_type = {**OF_THE_PAGE, "content-type": "application/json"}
        return self.ask("POST", path, json_type, json.dumps(body).encode())

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Answer:
        """Send one request on a connection of its own."""
        reply = self.begin(method, path, headers, body)
        with reply:
            told = {name.lower(): value for name, value in reply.getheaders()}
            return Answer(reply.status, told, reply.read())

    def begin(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> http.client.HTTPResponse:
        """Send a request, and return its reply to be read piece by piece."""
        host, port = self._place
        # Then the reply alone holds the connection.
        sent = {"connection": "close", "cookie": self.cookie}
        sent |= {} if method == "GET" else {"origin": self.origin}
        sent |= headers
        connection = (
            http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
            if self._tls is None
            else http.client.HTTPSConnection(
                host, port, timeout=PATIENCE_S, context=self._tls
            )
        )
        try:
            connection.request(method, path, body, {k: v for k, v in sent.items() if v})
            return connection.getresponse()
        finally:
            connection.close()
