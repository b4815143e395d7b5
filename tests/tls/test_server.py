"""The key that a broker proves: its own, or that of a PKCS#12 file."""

import asyncio
import os
import ssl
import time
from pathlib import Path

import pytest
import uvloop

from grass.errors import GrassError
from grass.tls import key_files
from grass.tls.pins import client_context, expiry_of, pin_of
from grass.tls.server import ServerIdentity, identity
from tests.tls.certificates import (
    PASSPHRASE,
    certificate,
    dated,
    expired_keystore,
    keystore,
)


def never_asked() -> bytes:
    raise AssertionError("the pass phrase is not needed")


def own(folder: Path) -> ServerIdentity:
    return identity(str(folder), None, never_asked)


def test_a_broker_makes_a_key_once_that_others_cannot_read(tmp_path: Path) -> None:
    first = own(tmp_path)
    assert own(tmp_path).pin == first.pin
    assert sorted(os.listdir(tmp_path)) == ["broker.key", "broker.pem"]
    for name in os.listdir(tmp_path):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert first.expires_at > time.time() + 365 * 86400


def test_a_certificate_that_expires_soon_is_renewed_with_the_same_key(
    tmp_path: Path,
) -> None:
    pin = own(tmp_path).pin
    path = tmp_path / key_files.CERTIFICATE_FILE
    soon = time.time() + key_files.RENEWED_BEFORE_S
    dated(tmp_path / key_files.KEY_FILE, path, soon + 3600)
    kept = path.read_bytes()
    assert own(tmp_path).pin == pin
    assert path.read_bytes() == kept
    dated(tmp_path / key_files.KEY_FILE, path, soon - 3600)
    renewed = own(tmp_path)
    assert renewed.pin == pin
    assert renewed.expires_at > soon + 3600


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_certificate_that_is_gone_or_damaged_is_made_again(
    tmp_path: Path, damage: bytes | None
) -> None:
    pin = own(tmp_path).pin
    path = tmp_path / key_files.CERTIFICATE_FILE
    path.unlink() if damage is None else path.write_bytes(damage)
    assert own(tmp_path).pin == pin


def test_a_key_that_is_damaged_or_open_to_others_is_refused(tmp_path: Path) -> None:
    own(tmp_path)
    path = tmp_path / key_files.KEY_FILE
    path.chmod(0o644)
    with pytest.raises(GrassError, match="can be read by others"):
        own(tmp_path)
    path.chmod(0o600)
    path.write_bytes(b"garbage")
    with pytest.raises(GrassError, match="is damaged"):
        own(tmp_path)


def test_a_home_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(GrassError, match="No such file or directory"):
        identity(str(tmp_path / "none"), None, never_asked)


def test_the_documented_lines_make_a_broker_s_certificate(tmp_path: Path) -> None:
    key, path = certificate(tmp_path)
    store = keystore(tmp_path, key, path)
    found = identity(str(tmp_path), str(store), PASSPHRASE.encode)
    der = ssl.PEM_cert_to_DER_cert(path.read_text())
    assert found.pin == pin_of(der)
    assert found.expires_at == expiry_of(der)
    assert not (tmp_path / key_files.KEY_FILE).exists()
    assert uvloop.run(handshake_with(found.context)) == (der, "TLSv1.3")


async def handshake_with(context: ssl.SSLContext) -> tuple[bytes, str]:
    """Connect to a server with this context; return its certificate and the version."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client_context()
        )
        tls = writer.get_extra_info("ssl_object")
        seen = tls.getpeercert(binary_form=True), tls.version()
        await reader.read()
        writer.close()
        return seen


def test_a_side_that_knows_only_older_tls_gets_no_connection(tmp_path: Path) -> None:
    context = client_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    async def story() -> None:
        server = await asyncio.start_server(
            lambda *_: None, "127.0.0.1", 0, ssl=own(tmp_path).context
        )
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", port, ssl=context)

    uvloop.run(story())


def test_an_empty_pass_phrase_is_not_asked_for(tmp_path: Path) -> None:
    key, path = certificate(tmp_path)
    store = keystore(tmp_path, key, path, "-passout", "pass:")
    assert identity(str(tmp_path), str(store), never_asked).pin


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604])
def test_a_key_without_a_pass_phrase_that_others_may_read_gets_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    key, path = certificate(tmp_path)
    store = keystore(tmp_path, key, path, "-passout", "pass:")
    store.chmod(mode)
    identity(str(tmp_path), str(store), never_asked)
    assert ("key.readable" in caplog.text) == bool(mode & 0o044)


def test_a_key_with_a_pass_phrase_gets_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = keystore(tmp_path, *certificate(tmp_path))
    store.chmod(0o644)
    identity(str(tmp_path), str(store), PASSPHRASE.encode)
    assert "chmod" not in caplog.text


def refused(tmp_path: Path, store: Path, answer: bytes | None) -> str:
    with pytest.raises(GrassError) as caught:
        identity(str(tmp_path), str(store), lambda: answer)
    assert "\n" not in str(caught.value)
    assert PASSPHRASE not in str(caught.value)
    return str(caught.value)


def test_a_wrong_pass_phrase_or_none_is_one_line(tmp_path: Path) -> None:
    store = keystore(tmp_path, *certificate(tmp_path))
    assert "the pass phrase does not open" in refused(tmp_path, store, b"wrong")
    assert "--cert-pass-file" in refused(tmp_path, store, None)


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    store = expired_keystore(tmp_path)
    assert "expired on" in refused(tmp_path, store, PASSPHRASE.encode())


def test_a_file_without_what_a_broker_needs_is_refused(tmp_path: Path) -> None:
    key, path = certificate(tmp_path)
    answer = PASSPHRASE.encode()
    bare = keystore(tmp_path, key, path, "-nokeys")
    assert "no private key" in refused(tmp_path, bare, answer)
    bare = keystore(tmp_path, key, path, "-nocerts")
    assert "no certificate" in refused(tmp_path, bare, answer)
    assert "not a PKCS#12 file" in refused(tmp_path, path, answer)
    assert "cannot be read" in refused(tmp_path, tmp_path / "none", answer)
    small = keystore(tmp_path, *certificate(tmp_path, key="rsa:512"))
    assert "cannot be used" in refused(tmp_path, small, answer)


def test_a_certificate_that_expires_soon_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key, path = certificate(tmp_path)
    dated(key, path, time.time() + 86400)
    store = keystore(tmp_path, key, path)
    identity(str(tmp_path), str(store), PASSPHRASE.encode)
    assert "certificate.expires" in caplog.text
