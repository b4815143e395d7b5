"""Addresses of brokers and lines to join them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.addresses import Address, Invitation, read_address, read_invitation

PIN = "ownpTMgMyfqR4SFWPqYi7lZuhKPgU7w8S4xQ23hHMpo"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("my.server.com:7501", ("my.server.com", 7501)),
        ("my.server.com", ("my.server.com", 7500)),
        ("gpu_box-1:80", ("gpu_box-1", 80)),
        ("0.0.0.0:7500", ("0.0.0.0", 7500)),
        ("1.2.3.4", ("1.2.3.4", 7500)),
        ("[::1]:7501", ("::1", 7501)),
        ("[::1]", ("::1", 7500)),
        ("::1", ("::1", 7500)),
        ("2001:db8::7", ("2001:db8::7", 7500)),
        ("[fe80::1%eth0]:9", ("fe80::1%eth0", 9)),
        ("[::ffff:1.2.3.4]:9", ("::ffff:1.2.3.4", 9)),
        ("host.:0", ("host.", 0)),
        (" host:1\n", ("host", 1)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    read = read_address(text)
    assert read == address
    assert read_address(str(read)) == read


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1.2.3.4", "1.2.3.4:7613"),
        ("1.2.3.4:99", "1.2.3.4:99"),
        ("my.server.com", "my.server.com:7613"),
        ("my.server.com:99", "my.server.com:99"),
        ("::1", "[::1]:7613"),
        ("[::1]", "[::1]:7613"),
        ("[::1]:99", "[::1]:99"),
        ("fe80::1%lo", "[fe80::1%lo]:7613"),
    ],
)
def test_a_port_that_is_left_out_is_the_one_that_is_known(
    text: str, written: str
) -> None:
    assert str(read_address(text, 7613)) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        ":7500",
        "host:",
        "host:port",
        "host:65536",
        "host:-1",
        "host:\u0663",
        "a b:1",
        "[::1",
        "[::1]x",
        "[host]:1",
        "::g",
        "host:1:2",
        "7500",
        "7500:7500",
        "-x:1",
        "https://host:1",
        "host:1/x",
        "us\u00e9:1",
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_address(text)
    assert "HOST:PORT" in caught.value.hint
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", ["my.server.com:7500", "[::1]:7500", "here"])
@pytest.mark.parametrize("prefix", ["", "grass join ", "  grass  join  "])
def test_an_invitation_is_read_bare_or_as_the_pasted_line(
    host: str, prefix: str
) -> None:
    invitation = read_invitation(f"{prefix}{host}/{PIN}/c0-_de\n")
    assert invitation == Invitation(read_address(host), PIN, "c0-_de")
    assert read_invitation(str(invitation)) == invitation


@pytest.mark.parametrize(
    "line",
    [
        "",
        "grass join",
        "host",
        f"host/{PIN}",
        f"host/{PIN}/",
        f"host/{PIN}/a/b",
        f"host/{PIN[1:]}/secret",
        f"host/{PIN} secret",
        f"host/{PIN[1:]}!/secret",
        f"ho st/{PIN}/secret",
        f"/{PIN}/secret",
    ],
)
def test_a_broken_invitation_is_refused_without_repeating_its_secret(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_invitation(line)
    assert "secret" not in str(caught.value)


@given(text=st.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = read_address(text)
    except UsageError:
        return
    assert isinstance(address, Address)
    assert read_address(str(address)) == address
