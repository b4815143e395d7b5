"""The first Grass's own example of several machines, word for word."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.lan import Host, Lan

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(180)]

KEY = (
    "openssl req -x509 -newkey rsa:4096 -keyout myKey.pem -out cert.pem -days 365"
    " -nodes -subj /CN=my.server.com"
)
STORE = (
    "openssl pkcs12 -export -out keyStore.p12 -inkey myKey.pem -in cert.pem"
    " -passout pass:secret"
)


@pytest.fixture
def lan(tmp_path: Path, namespaces: None) -> Iterator[Lan]:
    names = ("my.server.com", "worker", "anywhere")
    with closing(Lan(tmp_path, names, network="1.2.3", first=4)) as lan:
        yield lan


def typed(host: Host, line: str) -> str:
    ran = host.shell(line)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def left_running(host: Host, line: str) -> subprocess.Popen[str]:
    words = line.split()
    assert words[:2] == ["grass", "daemon"]
    return host.serve(*words[2:])


def test_every_line_of_it_runs(lan: Lan) -> None:
    broker, worker, anywhere = lan.hosts.values()
    typed(broker, KEY)
    typed(broker, STORE)
    broker.environment["GRASS_CERT_PASS"] = "secret"
    serving = left_running(
        broker,
        "grass daemon --bind 0.0.0.0:7500 --no-worker --cert keyStore.p12",
    )
    assert serving.stdout is not None
    line = serving.stdout.readline().strip()
    assert line.startswith("grass join my.server.com:7500/")
    typed(worker, f"{line} --no-start")
    typed(anywhere, f"{line} --no-start")
    worker.add_program("lpr", 'echo "printing $*"')
    (worker.desk / "train.py").write_text(
        "import sys; print('training', *sys.argv[1:])"
    )
    left_running(worker, "grass daemon --no-broker --connect my.server.com:7500")
    typed(worker, 'grass create-queue --capacity "{gpu:4}" cifar100 python train.py')
    typed(worker, 'grass create-queue --capacity "{printer:1}" print lpr')
    paper = (
        'grass enqueue --broker 1.2.3.4:7500 --require "{printer:1}" print paper.pdf'
    )
    model = 'grass enqueue --broker 1.2.3.4:7500 --require "{gpu:1}" cifar100 --lr=0.01'
    assert (typed(anywhere, paper), typed(anywhere, model)) == ("1\n", "2\n")
    typed(anywhere, "grass wait --broker 1.2.3.4:7500 1 2")
    shown = typed(anywhere, "grass show --broker 1.2.3.4:7500")
    assert "print" in shown
    assert "cifar100" in shown
    assert typed(anywhere, "grass logs 1") == "printing paper.pdf\n"
    assert typed(anywhere, "grass logs -f 2") == "training --lr=0.01\n"


def test_a_worker_that_has_not_joined_is_told_what_to_do(lan: Lan) -> None:
    worker = lan.hosts["worker"]
    ran = worker.shell("grass daemon --no-broker --connect my.server.com:7500")
    assert ran.returncode == 3
    assert "grass join my.server.com:7500/PIN/CODE" in ran.stderr
