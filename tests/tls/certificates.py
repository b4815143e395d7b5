"""Keys and certificates for tests, made by openssl as documented."""

import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

PASSPHRASE = "open sesame"


def openssl(*words: str) -> bytes:
    """Run openssl and return its output."""
    done = subprocess.run(["openssl", *words], check=True, capture_output=True)
    return done.stdout


def certificate(folder: Path, *, key: str = "rsa:2048") -> tuple[Path, Path]:
    """Make a key and its certificate with the line from the documentation."""
    key_path, path = folder / "myKey.pem", folder / "cert.pem"
    line = f"req -x509 -newkey {key} -days 365 -nodes -subj /CN=x"
    openssl(*line.split(), "-keyout", str(key_path), "-out", str(path))
    return key_path, path


def keystore(folder: Path, key: Path, path: Path, *words: str) -> Path:
    """Put a key and a certificate into a PKCS#12 file."""
    store = folder / "keyStore.p12"
    inside = ["-inkey", str(key), "-in", str(path), "-passout", f"pass:{PASSPHRASE}"]
    openssl("pkcs12", "-export", "-out", str(store), *inside, *words)
    return store


def dated(key_path: Path, path: Path, end_s: float) -> None:
    """Write a certificate of a key that expires at a time."""
    key = load_pem_private_key(key_path.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    end = datetime.fromtimestamp(end_s, UTC)
    made = x509.CertificateBuilder(
        name, name, key.public_key(), 7, end - timedelta(days=400), end
    ).sign(key, hashes.SHA256())
    path.write_bytes(made.public_bytes(Encoding.PEM))


def expired_keystore(folder: Path) -> Path:
    """Make a PKCS#12 file whose certificate expired yesterday."""
    key, path = certificate(folder)
    dated(key, path, time.time() - 86400)
    return keystore(folder, key, path)
