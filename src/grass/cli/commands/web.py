"""`grass web`: the dashboard in a browser."""

from __future__ import annotations

import os
import sys

from grass.cli.parsing.options import BROKER, JSON, Command, Option, at_most, read
from grass.cli.printing.streams import print_document, report_change, say, warn
from grass.client.client import Client
from grass.errors import UsageError
from grass.model.addresses import HIGHEST_PORT, Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.cli.parsing.options import Values
    from grass.client.json_codec import Document
    from grass.client.tls_connection import BrokerRoute

ROLES = ("read", "submit", "operate", "admin")
OPTIONS = (
    Option("--port", "PORT", "where to listen; 0: any free port (default: 4004)"),
    Option(
        "--host",
        "HOST",
        "the address to listen at; beyond loopback with TLS, and a login by token"
        " (default: 127.0.0.1)",
    ),
    Option("--role", "|".join(ROLES), "what this browser may do (default: admin)"),
    Option("--no-open", about="print the link, and open no browser"),
    Option("--stop", about="serve the page no more, and log every browser out"),
    BROKER,
    JSON,
)
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""One of these is set where a browser can be opened."""
_SSH_PORT = "22"
HOST, PORT = "127.0.0.1", 4004


def run(words: list[str]) -> int:
    """Open the page, or stop serving it."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    with Client(broker=values.broker) as client:
        if client.route is not None:
            return _forward(values, client, client.route)
        if values.has("stop"):
            return _stop(values, client)
        role, host = _role(values), values.text("host")
        port = _port(values)
        client.session()
        link = client.open_web(host, port, role)
    _show(values, link)
    return 0


def _forward(values: Values, client: Client, route: BrokerRoute) -> int:
    """Serve the page of another machine's broker here, until Ctrl-C."""
    if values.has("stop"):
        raise UsageError(f"the page of {client.peer} ends with Ctrl-C, where it runs")
    if values.has("role"):
        raise UsageError(
            f"--role is for this machine's own daemon: {client.peer} knows the role"
            " of the token that this machine has joined with"
        )
    port = _port(values)
    # Now, and not when the page asks: is it there, and may this token look?
    client.session()
    client.close()
    import asyncio

    from grass.daemon.forwarding.web_forwarding import serve_page

    address = Address(values.text("host") or HOST, PORT if port is None else port)

    def on_ready(link: Document) -> None:
        warn(f"this is the page of {client.peer}; Ctrl-C ends it")
        _show(values, link)

    asyncio.run(serve_page(route, address, on_ready))
    return 0


def _show(values: Values, link: Document) -> None:
    _print(values, link)
    sys.stdout.flush()
    if not values.has("no_open") and _has_browser():
        import webbrowser

        webbrowser.open(link["url"])


def _stop(values: Values, client: Client) -> int:
    for name in ("port", "host", "role", "no_open"):
        if values.has(name):
            raise UsageError(f"--{name.replace('_', '-')} does not go with --stop")
    stopped = "the page is served no more, and all browsers are logged out"
    return report_change(values, client.close_web(), stopped, "no page was served")


def _port(values: Values) -> int | None:
    port = values.whole_number("port")
    if port is not None and not 0 <= port <= HIGHEST_PORT:
        raise UsageError(f"--port is {port}", f"give 0 to {HIGHEST_PORT}")
    return port


def _role(values: Values) -> str:
    role = values.text("role") or "admin"
    if role not in ROLES:
        raise UsageError(f"--role is one of {', '.join(ROLES)}, not `{role}`")
    return role


def _print(values: Values, link: Document) -> None:
    is_local = link["token"] is not None
    forward = forwarding(link["port"], os.environ) if is_local else None
    if values.has("json"):
        print_document({**link, "ssh": forward})
        return
    if link["token"] is None:
        if values.has("role"):
            warn("--role is not used: beyond loopback each token has a role of its own")
        warn("log in with a token; `grass token new --login --name NAME` prints one")
        warn(f"the certificate that the browser asks about: {link['fingerprint']}")
    else:
        if forward is not None:
            warn(f"forward the port from the machine that you sit at: {forward}")
        warn("this link logs one browser in, once, within 5 minutes")
    say(link["url"])


def forwarding(port: int, environment: os._Environ[str]) -> str | None:
    """Return the command that forwards a port of this machine; None: not over ssh."""
    words = environment.get("SSH_CONNECTION", "").split()
    if len(words) != 4:
        return None
    from getpass import getuser

    number = "" if words[3] == _SSH_PORT else f"-p {words[3]} "
    return f"ssh {number}-L {port}:127.0.0.1:{port} {getuser()}@{words[2]}"


def _has_browser() -> bool:
    """Tell whether a browser would show up before the person who types."""
    if "SSH_CONNECTION" in os.environ:
        return False
    return any(os.environ.get(name) for name in _SCREENS)


COMMAND = Command(
    usage="[--port PORT] [--host HOST] [--role ROLE] [--no-open] [--json] | --stop",
    about=(
        "Open the dashboard in a browser: what runs where, how well the GPUs are used, "
        "why the rest waits, and all that the command line does. The daemon serves it "
        "on this machine alone, also after a restart, until --stop. The link that is "
        "printed logs one browser in; over ssh a line says how to forward the port. "
        "With --host others reach it too, over TLS, and log in with a token."
    ),
    options=OPTIONS,
    examples=(
        "grass web",
        "grass web --no-open --role read",
        "grass web --host 0.0.0.0",
        "grass web --stop",
    ),
    run=run,
)
