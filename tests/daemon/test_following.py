"""What a page follows of a job that runs: its output and its usage."""

from collections.abc import Iterator

import pytest

from grass.client.json_codec import Document
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

NOTHING = ("--require", "{}")


def of_topic(frames: Iterator[tuple[str, Document]], topic: str) -> Iterator[Document]:
    return (data for name, data in frames if name == topic)


def test_output_is_followed_from_its_end_on(
    shared: GrassHome, gate: Fifo, news: Fifo
) -> None:
    line = f"echo before; echo > {news}; read x < {gate}; echo hällo; echo more"
    job = shared.enqueue(*NOTHING, "--", "sh", "-c", line)
    news.hear()
    with shared.client.beside() as client:
        frames = of_topic(client.follow([f"log:{job}"]), f"log:{job}")
        begin = next(frames)
        assert begin == {
            "attempt": 1,
            "offset": len("before\n"),
            "end": len("before\n"),
            "text": "",
            "ended": False,
        }
        gate.tell()
        text, end = "", begin["end"]
        for frame in frames:
            assert frame["offset"] == end
            text, end = text + frame["text"], frame["end"]
            if frame["ended"]:
                break
    assert text == "hällo\nmore\n"
    assert end == len("before\nhällo\nmore\n".encode())


def test_output_is_followed_into_the_next_attempt(
    shared: GrassHome, gate: Fifo
) -> None:
    line = f"read x < {gate}; echo $x; exit 1"
    job = shared.enqueue(*NOTHING, "--retries", "1", "--", "sh", "-c", line)
    with shared.client.beside() as client:
        frames = of_topic(client.follow([f"log:{job}"]), f"log:{job}")
        for number in (1, 2):
            assert next(frames)["attempt"] == number
            gate.tell(f"line {number}")
            text = ""
            for frame in frames:
                text += frame["text"]
                if frame["ended"]:
                    break
            assert text == f"line {number}\n"


def test_a_job_that_does_not_exist_is_told(shared: GrassHome) -> None:
    with shared.client.beside() as client:
        frames = of_topic(client.follow(["log:99999"]), "log:99999")
        assert next(frames) == {"problem": "there is no job 99999"}


def test_usage_is_followed(shared: GrassHome, gate: Fifo) -> None:
    job = shared.enqueue(*NOTHING, "--", "sh", "-c", f"read x < {gate}")
    with shared.client.beside() as client:
        frames = of_topic(client.follow([f"usage:{job}"]), f"usage:{job}")
        told = next(frames)
        again = next(frames)
        gate.tell()
    assert told["attempt"] == 1
    elapsed = [one["elapsed_s"] for one in told["samples"] + again["samples"]]
    assert elapsed == sorted(set(elapsed))
    known = {one["elapsed_s"] for one in shared.client.usage(job)["points"]}
    assert set(elapsed) <= known
