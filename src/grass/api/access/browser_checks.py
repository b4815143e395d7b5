"""Which requests of a browser are answered at all, before it is asked who it is.

A page of another site may send requests to this one, and its name may be made to point
here (DNS rebinding). So the Host has to be a name of this server, an Origin its own,
and Sec-Fetch-Site may not tell of another site. These are checks of every request, not
of a list of methods. The one exception is a link that a person follows to a page.
"""

from collections.abc import Iterable
from ipaddress import ip_address

from starlette.requests import Request

from grass.config import API_PREFIX
from grass.errors import Forbidden, UsageError
from grass.model.addresses import is_loopback

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE = ("GET", "HEAD")
_JSON = "application/json"


class BrowserChecks:
    """The names and the scheme of one server."""

    def __init__(self, scheme: str, names: Iterable[str]) -> None:
        self.scheme = scheme
        self._names = frozenset(name.lower() for name in names)
        self._is_loopback = all(map(is_loopback, self._names))

    def check(self, request: Request) -> None:
        """Raise unless a request is for this server and from its own pages."""
        host = self._host(request)
        if is_navigation(request):
            return
        origin, site = (request.headers.get(name) for name in _SENDERS)
        if origin is not None and origin != f"{self.scheme}://{host}":
            raise Forbidden(f"a page of {origin[:200]!r} may not call this server")
        if site not in (None, "same-origin", "none"):
            raise Forbidden("a page of another site may not call this server")
        if request.method not in SAFE:
            self._check_change(request, origin or site)

    def _check_change(self, request: Request, sender: str | None) -> None:
        if sender in (None, "none"):
            raise Forbidden(
                "a browser that changes something has to say where it comes from",
                "programs use the socket or a token: see `grass token --help`",
            )
        kind = request.headers.get("content-type", _JSON).partition(";")[0]
        if is_api(request) and kind.strip().lower() != _JSON:
            raise UsageError(f"the body of a request is {_JSON}")

    def _host(self, request: Request) -> str:
        """Return the Host of a request if it means this server."""
        told = request.headers.getlist("host")
        name = _name(told[0]) if len(told) == 1 else ""
        if name not in self._names and (self._is_loopback or not _is_address(name)):
            raise Forbidden(f"{name[:200]!r} is no name of this server")
        return told[0]


_SENDERS = ("origin", "sec-fetch-site")


def is_navigation(request: Request) -> bool:
    """Return whether a person goes to a page, from wherever."""
    fetched = [request.headers.get(name) for name in _FETCHED]
    is_page = request.method == "GET" and not is_api(request)
    return is_page and fetched == ["navigate", "document"]


_FETCHED = ("sec-fetch-mode", "sec-fetch-dest")


def is_api(request: Request) -> bool:
    """Return whether a request is for the API; the Host has no say in that."""
    path: str = request.scope["path"]
    return path == API_PREFIX or path.startswith(API_PREFIX + "/")


def _name(host: str) -> str:
    """Return the name of a Host, without its port.

    The port may be another one: ssh forwards any.
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    """Return whether a name is a number: no other site can have it as its own."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
