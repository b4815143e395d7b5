"""The web server of a real daemon: links, cookies, restarts and the end."""

import contextlib
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.browsing import OF_THE_PAGE, Browser
from tests.support.homes import Document, GrassHome
from tests.support.nobody import other_home, run_as_nobody
from tests.support.patience import until

__all__ = ["other_home"]

pytestmark = pytest.mark.daemon

SESSION = "/api/v1/session"
STREAM = "/api/v1/events/stream"


def opened(home: GrassHome, *options: str) -> Document:
    """Have a page served, and return what is told of it."""
    printed = home.ok("web", "--no-open", "--json", *options)
    document: Document = json.loads(printed)
    return document


def logged_in(home: GrassHome, *options: str) -> Browser:
    """Return a browser that has followed a link."""
    url = opened(home, *options)["url"]
    browser = Browser(url)
    assert browser.follow(url).status == 303
    return browser


def test_a_browser_steers_by_the_link_that_is_printed(home: GrassHome) -> None:
    ran = home.run("web", "--no-open", "--port", "0")
    url = ran.stdout.strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?token=[\w-]{43}", url)
    assert "once" in ran.stderr
    browser = Browser(url)
    assert browser.follow(url).headers["location"] == "/"
    assert browser.get("/").status == 200
    assert Browser(url).follow(url).status == 401
    added = browser.post("/api/v1/jobs", {"jobs": [{"command": ["true"]}]})
    assert added.status == 200
    job = home.wait(added.document["first"])
    assert (job["state"], job["owner"]) == ("succeeded", f"uid:{os.geteuid()}")
    mode = stat.S_IMODE((home.folder / "web.json").stat().st_mode)
    assert mode == 0o600


@pytest.fixture
def host() -> str:
    """An address of loopback where no other test takes a port meanwhile."""
    return ".".join(["127", *(str(1 + number % 250) for number in os.urandom(3))])


def test_the_page_is_where_it_was_after_a_restart(home: GrassHome, host: str) -> None:
    browser = logged_in(home, "--port", "0", "--host", host)
    home.restart()
    assert browser.get(SESSION).status == 200
    home.replace_daemon()
    assert browser.get(SESSION).status == 200
    again = opened(home)
    assert Browser(again["url"]).origin == browser.origin


def test_stop_logs_every_browser_out(home: GrassHome, host: str) -> None:
    browser = logged_in(home, "--port", "0", "--host", host)
    port = opened(home)["port"]
    with browser.begin("GET", STREAM, OF_THE_PAGE) as stream:
        assert stream.readline().startswith(b"id: ")
        assert "logged out" in home.ok("web", "--stop")
        with pytest.raises((http.client.IncompleteRead, OSError)):
            stream.read()
    with pytest.raises(ConnectionRefusedError):
        browser.get(SESSION)
    assert not (home.folder / "web.json").exists()
    assert "no page" in home.ok("web", "--stop")
    opened(home, "--port", str(port), "--host", host)
    assert browser.get(SESSION).status == 401


def test_a_logout_ends_what_the_browser_follows(home: GrassHome) -> None:
    job = home.enqueue("--", "sh", "-c", "echo here; exec sleep 1000")
    other = logged_in(home, "--port", "0")
    browser = logged_in(home)
    followed = (
        "stream?topics=overview",
        "events/stream",
        f"jobs/{job}/output?follow=1",
    )
    with contextlib.ExitStack() as open_streams:
        streams = [
            open_streams.enter_context(
                browser.begin("GET", f"/api/v1/{path}", OF_THE_PAGE)
            )
            for path in followed
        ]
        for stream in streams:
            assert stream.read(1)
        assert browser.post("/logout", {}).status == 303
        for stream in streams:
            with pytest.raises((http.client.IncompleteRead, OSError)):
                stream.read()
    assert browser.get(SESSION).status == 401
    home.restart()
    assert browser.get(SESSION).status == 401
    assert other.get(SESSION).status == 200


def test_a_role_that_only_reads_may_not_steer(home: GrassHome) -> None:
    browser = logged_in(home, "--port", "0", "--role", "read")
    assert browser.get(SESSION).document["rights"] == ["read"]
    refused = browser.post("/api/v1/pause", {})
    assert (refused.status, refused.document["code"]) == (403, "forbidden")
    ran = home.run("web", "--role", "worker")
    assert (ran.returncode, "--role is one of" in ran.stderr) == (2, True)


def test_a_port_that_is_taken_is_named_with_the_way_out(home: GrassHome) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ran = home.run("web", "--no-open", "--port", port)
        assert ran.returncode == 5
        assert f"cannot be served at 127.0.0.1:{port}: address already" in ran.stderr
        assert "grass web --port 0" in ran.stderr
        assert not (home.folder / "web.json").exists()


def test_a_daemon_starts_though_its_port_was_taken_meanwhile(
    home: GrassHome, host: str
) -> None:
    port = opened(home, "--port", "0", "--host", host)["port"]
    home.ok("stop")
    with socket.create_server((host, port)):
        home.ok("start")
        until(lambda: "web.failed" in home.log(), "the failure was never logged")
        assert home.run("web", "--no-open").returncode == 5
    assert opened(home)["port"] == port


def test_the_page_moves_where_it_is_asked_to(home: GrassHome, host: str) -> None:
    browser = logged_in(home, "--port", "0", "--host", host)
    assert opened(home, "--port", "0")["port"] == opened(home)["port"]
    with socket.create_server((host, 0)) as free:
        port = free.getsockname()[1]
    second = opened(home, "--port", str(port))
    assert (second["host"], second["port"]) == (host, port)
    with pytest.raises(ConnectionRefusedError):
        browser.get(SESSION)
    moved = Browser(second["url"])
    moved.cookie = browser.cookie
    assert moved.get(SESSION).status == 200


def test_beyond_loopback_there_is_tls_and_a_login_by_token(home: GrassHome) -> None:
    told = opened(home, "--host", "0.0.0.0", "--port", "0")
    assert told["token"] is None
    assert told["url"] == f"https://{socket.gethostname()}:{told['port']}/"
    assert "--role is not used" in home.run("web", "--role", "read").stderr
    place = f"127.0.0.1:{told['port']}"
    plain = Browser(f"http://{place}")
    with pytest.raises((http.client.HTTPException, OSError)):
        plain.get("/")
    browser = Browser(f"https://{place}")
    page = browser.ask("GET", "/", {"accept": "text/html"})
    assert (page.status, b'name="token"' in page.body) == (401, True)
    assert browser.log_in("ada.wrong").status == 401
    token = home.ok("token", "new", "--login", "--name", "ada").strip()
    entered = browser.log_in(token)
    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert "secure" in entered.headers["set-cookie"].lower()
    session = browser.get(SESSION).document
    assert (session["actor"], session["rights"]) == ("token:ada", ["read"])
    assert browser.ask("GET", SESSION, {"host": "evil.example"}).status == 403
    certificate = ssl.get_server_certificate(("127.0.0.1", told["port"]))
    shown = ssl.PEM_cert_to_DER_cert(certificate)
    digest = hashlib.sha256(shown).digest().hex(":").upper()
    assert told["fingerprint"] == digest


def test_a_revoked_token_ends_its_sessions(home: GrassHome) -> None:
    told = opened(home, "--host", "0.0.0.0", "--port", "0")
    browser = Browser(f"https://127.0.0.1:{told['port']}")
    token = home.ok("token", "new", "--login", "--role", "operate").strip()
    assert browser.log_in(token).status == 303
    with browser.begin("GET", STREAM, OF_THE_PAGE) as stream:
        assert stream.readline().startswith(b"id: ")
        home.ok("token", "revoke", token.partition(".")[0])
        with pytest.raises((http.client.IncompleteRead, OSError)):
            stream.read()
    assert browser.get(SESSION).status == 401


def test_a_cookie_of_the_owner_is_not_valid_beyond_loopback(home: GrassHome) -> None:
    browser = logged_in(home, "--port", "0")
    told = opened(home, "--host", "0.0.0.0", "--port", "0")
    beyond = Browser(f"https://127.0.0.1:{told['port']}")
    beyond.cookie = browser.cookie
    assert beyond.get(SESSION).status == 401


def test_over_ssh_a_line_says_how_to_forward_the_port(home: GrassHome) -> None:
    over = {"SSH_CONNECTION": "192.0.2.9 50000 192.0.2.1 2222", "USER": "ada"}
    over |= {"LOGNAME": "ada", "DISPLAY": ":0"}
    told = json.loads(home.ok("web", "--json", "--port", "0", env=over))
    port = told["port"]
    line = f"ssh -p 2222 -L {port}:127.0.0.1:{port} ada@192.0.2.1"
    assert told["ssh"] == line
    assert line in home.run("web", env=over).stderr


def test_a_browser_is_opened_where_there_is_one(
    home: GrassHome, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    home.add_program("firefly", f'echo "$1" > {seen}.new; mv {seen}.new {seen}')
    printed = home.ok("web", "--port", "0", env={"BROWSER": "firefly %s"}).strip()
    until(seen.exists, "no browser was opened")
    assert seen.read_text().strip() == printed
    seen.unlink()
    home.ok("web", "--no-open", env={"BROWSER": "firefly %s"})
    assert not seen.exists()


def test_another_user_of_the_machine_gets_nothing(
    home: GrassHome, other_home: Path
) -> None:
    browser = logged_in(home, "--port", "0")
    fetch = (
        "import sys, urllib.request, urllib.error\n"
        "asked = urllib.request.Request(sys.argv[1], headers={'Cookie': sys.argv[2]})\n"
        "try: print(urllib.request.urlopen(asked).status)\n"
        "except urllib.error.HTTPError as error: print(error.code)\n"
    )
    words = [sys.executable, "-c", fetch, browser.origin + SESSION, browser.cookie]
    assert run_as_nobody(other_home, words).stdout.strip() == "403"
    own = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert own.stdout.strip() == "200"


def test_a_daemon_that_serves_no_page_imports_nothing_of_it() -> None:
    looked = "import sys, grass.daemon.broker_host; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", looked], capture_output=True, text=True, check=True
    )
    loaded = ran.stdout.split()
    assert not [name for name in loaded if name.startswith("grass.web")]
    assert not [name for name in loaded if ".web_app" in name or "web_s" in name]
    # Most daemons have neither links nor channels of tasks.
    assert "websockets" not in loaded
