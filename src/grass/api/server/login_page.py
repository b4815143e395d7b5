"""The pages of a browser that has not logged in: one to log in, one that looks again.

They are whole in themselves: a browser without a cookie gets no other file.
"""

import hashlib
from base64 import b64encode
from html import escape

from starlette.responses import Response

from grass.api.server.static_files import ISOLATION

_STYLE = """
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
body { display: grid; min-height: 90vh; place-content: center; margin: 1rem; }
main { max-width: 26rem; }
h1 { font-size: 1.25rem; margin: 0 0 .5rem; }
form { display: flex; gap: .5rem; margin-top: 1rem; }
input { flex: 1; font: inherit; padding: .4rem .6rem; }
button { font: inherit; padding: .4rem .9rem; }
code { font: 13px ui-monospace, monospace; }
"""
_POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri"
    " 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    **ISOLATION,
    # With `no-referrer` a browser would not say where a form comes from.
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": _POLICY.format(
        style=b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    ),
    "Cache-Control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{head}
<title>Grass</title>
<style>{style}</style>
</head>
<body><main>{body}</main></body>
</html>
"""
_ADVICE = """<h1>Log in to Grass</h1>
<p role="status">{told}</p>
<p>Type <code>grass web</code> in a terminal of this machine: it opens this page, or
prints a link that does.</p>"""
_FORM = """<h1>Log in to Grass</h1>
<p role="status">{told}</p>
<p>A token is needed. At the broker, <code>grass token new --login</code> prints
one.</p>
<form method="post" action="/login">
<input type="password" name="token" aria-label="Token" placeholder="NAME.SECRET"
autocomplete="current-password" required autofocus>
<button>Log in</button>
</form>"""


def link_page(told: str = "", status: int = 401) -> Response:
    """Return the page that says how to get a link to log in with."""
    return _page(_ADVICE.format(told=escape(told)), status)


def token_page(told: str = "", status: int = 401) -> Response:
    """Return the page with a field for a token."""
    return _page(_FORM.format(told=escape(told)), status)


def look_again_page() -> Response:
    """Return a page that goes to its own address.

    A browser that follows a link from another site leaves the cookie out; it sends it
    when a page of this site asks.
    """
    head = '\n<meta http-equiv="refresh" content="0">'
    return _page("<p>One moment.</p>", 200, head)


def _page(body: str, status: int, head: str = "") -> Response:
    page = _PAGE.format(head=head, style=_STYLE, body=body)
    return Response(page, status, _HEADERS, "text/html")
