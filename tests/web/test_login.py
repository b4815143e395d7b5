"""Logging in with a real browser, and what pages of other sites get from it."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.homes import Document, GrassHome
from tests.support.patience import PATIENCE_S, until

pytestmark = [pytest.mark.daemon, pytest.mark.browser]


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has not logged in, and takes the certificate of a broker."""
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context
    context.close()


def link(home: GrassHome) -> Document:
    opened: Document = home.client.open_web(port=0)
    return opened


@contextmanager
def other_site(body: str) -> Iterator[str]:
    """Serve a page under a name that is another site's to a browser."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_told: object) -> None:
            """Be quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()
        thread.join()


def expect_the_page(page: Page) -> None:
    expect(page.get_by_role("navigation").first).to_be_visible()


def test_a_link_logs_one_browser_in(
    box: GrassHome, browser: Browser, context: BrowserContext
) -> None:
    url = link(box)["url"]
    page = context.new_page()
    page.goto(url)
    expect_the_page(page)
    assert "token" not in page.url
    other = browser.new_context()
    late = other.new_page()
    late.goto(url)
    expect(late.get_by_role("status")).to_contain_text("used already")
    expect(late.get_by_text("grass web")).to_be_visible()
    other.close()


def test_a_link_on_another_site_leads_to_the_page(
    box: GrassHome, context: BrowserContext
) -> None:
    told = link(box)
    place = f"http://127.0.0.1:{told['port']}"
    page = context.new_page()
    page.goto(told["url"])
    expect_the_page(page)
    with other_site(f"<a href='{place}/jobs'>the jobs</a>") as elsewhere:
        page.goto(elsewhere)
        page.get_by_role("link", name="the jobs").click()
        expect_the_page(page)
        assert page.url == f"{place}/jobs"


HOSTILE = """
<iframe name="frame" src="{place}/"></iframe>
<iframe name="sink"></iframe>
<form id="pause" method="post" target="sink" enctype="text/plain"
  action="{place}/api/v1/pause"><input name='{{"queue":null,"x":"' value='"}}'></form>
<form id="out" method="post" target="sink" action="{place}/logout"></form>
<script>
const place = "{place}";
const asked = [];
for (const credentials of ["include", "same-origin"]) {{
  for (const mode of ["cors", "no-cors"]) {{
    asked.push(fetch(place + "/api/v1/overview", {{mode, credentials}}));
    for (const type of ["text/plain", "application/json"]) {{
      asked.push(fetch(place + "/api/v1/pause", {{
        method: "POST", mode, credentials, body: "{{}}",
        headers: {{"Content-Type": type}},
      }}));
    }}
  }}
}}
document.getElementById("pause").submit();
document.getElementById("out").submit();
Promise.allSettled(asked).then(async (all) => {{
  const read = [];
  for (const one of all) {{
    if (one.status === "fulfilled") read.push(await one.value.text());
  }}
  document.title = "read " + read.join("");
}});
</script>
"""


def test_a_page_of_another_site_reads_and_changes_nothing(
    box: GrassHome, context: BrowserContext
) -> None:
    told = link(box)
    place = f"http://127.0.0.1:{told['port']}"
    page = context.new_page()
    page.goto(told["url"])
    expect_the_page(page)
    with other_site(HOSTILE.format(place=place)) as elsewhere:
        hostile = context.new_page()
        hostile.goto(elsewhere)
        # Replies that it may not look into are empty to it.
        expect(hostile).to_have_title("read")
        frame = hostile.frame("frame")
        assert frame is not None
        assert frame.get_by_role("navigation").count() == 0
    page.reload()
    expect_the_page(page)
    assert not box.client.overview()["daemon"]["paused"]


def test_a_person_logs_in_with_a_token_over_tls(
    cold: GrassHome, context: BrowserContext
) -> None:
    cold.ok("start")
    told = cold.client.open_web("0.0.0.0", 0)
    page = context.new_page()
    page.goto(f"https://127.0.0.1:{told['port']}/jobs")
    page.get_by_label("Token").fill("ada.wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("status")).to_contain_text("unknown here")
    token = cold.client.new_token("read", "ada", code=False)["token"]
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect_the_page(page)
    cold.client.revoke_token("ada")
    until(
        lambda: page.request.get(page.url, max_redirects=0).status,
        "the session did not end",
        lambda status: status == 401,
    )
