"""Pins and expiry of certificates, parsed without a library."""

import base64
import contextlib
import hashlib
import ssl
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import Untrusted
from grass.tls.pins import check_certificate, expiry_of, pin_of
from tests.tls.certificates import certificate, dated, openssl

LATER = 4102444800  # 2100-01-01


def der_of(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


@pytest.mark.parametrize("key", ["rsa:2048", "ed25519"])
def test_the_pin_is_what_openssl_computes_of_the_public_key(
    tmp_path: Path, key: str
) -> None:
    _, path = certificate(tmp_path, key=key)
    public = openssl("x509", "-in", str(path), "-noout", "-pubkey")
    key_der = base64.b64decode(b"".join(public.splitlines()[1:-1]))
    digest = base64.urlsafe_b64encode(hashlib.sha256(key_der).digest())
    pin = pin_of(der_of(path))
    assert pin == digest.rstrip(b"=").decode()
    assert len(pin) == 43


@pytest.mark.parametrize("end", [1_000_000_000, 2_000_000_000, LATER])
def test_the_expiry_is_read_in_both_of_its_forms(tmp_path: Path, end: int) -> None:
    key, path = certificate(tmp_path)
    dated(key, path, end)
    assert expiry_of(der_of(path)) == end


def test_a_certificate_of_the_first_version_is_read_too(tmp_path: Path) -> None:
    key, _ = certificate(tmp_path)
    request, path = tmp_path / "request.pem", tmp_path / "first.pem"
    openssl("req", "-new", "-key", str(key), "-subj", "/CN=x", "-out", str(request))
    signing = ["-req", "-in", str(request), "-signkey", str(key), "-out", str(path)]
    openssl("x509", *signing)
    assert b"Version: 1 " in openssl("x509", "-in", str(path), "-noout", "-text")
    assert pin_of(der_of(path)) == pin_of(der_of(tmp_path / "cert.pem"))


def test_an_expired_certificate_is_not_trusted(tmp_path: Path) -> None:
    key, path = certificate(tmp_path)
    dated(key, path, 2_000_000_000)
    der = der_of(path)
    assert check_certificate(der, 1_999_999_999) == pin_of(der)
    with pytest.raises(Untrusted, match="expired on 2033-05-18"):
        check_certificate(der, 2_000_000_000)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return der_of(certificate(tmp_path_factory.mktemp("whole"))[1])


@given(data=st.data())
def test_a_damaged_certificate_is_read_or_refused(
    whole: bytes, data: st.DataObject
) -> None:
    der = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(der) - 1))
        der[at] = data.draw(st.integers(0, 255))
    cut = bytes(der[: data.draw(st.integers(0, len(der)))])
    for damaged in (bytes(der), cut):
        with contextlib.suppress(Untrusted):
            assert len(check_certificate(damaged, time.time())) == 43


def element(tag: int, content: bytes) -> bytes:
    return bytes([tag, 0x82]) + len(content).to_bytes(2, "big") + content


def shaped(serial: int = 0x02, validity: int = 0x30, key: int = 0x30) -> bytes:
    """Make DER of the form of a certificate, with these tags."""
    times = element(0x17, b"200101000000Z") + element(0x17, b"400101000000Z")
    fields = element(serial, b"1") + element(0x30, b"") + element(0x30, b"")
    fields += element(validity, times) + element(0x30, b"") + element(key, b"key")
    return element(0x30, element(0x30, fields))


def test_a_field_of_another_type_is_refused() -> None:
    assert len(pin_of(shaped())) == 43
    assert expiry_of(shaped()) == 2_208_988_800
    for wrong in (
        shaped(serial=0x30),
        shaped(serial=0x04),
        shaped(validity=0x31),
        shaped(key=0x04),
        shaped(key=0xA3),
    ):
        for read in (pin_of, expiry_of):
            with pytest.raises(Untrusted):
                read(wrong)


def test_an_indefinite_length_is_refused() -> None:
    fields = shaped()[8:]
    for outer in (
        b"\x30\x80" + element(0x30, fields) + b"\0\0",
        element(0x30, b"\x30\x80" + fields + b"\0\0"),
        element(0x30, element(0x30, b"\x02\x80" + fields)),
    ):
        with pytest.raises(Untrusted):
            pin_of(outer)
