"""The decoders under a fuzzer that looks at which lines it has reached: `make fuzz`.

`python -m tests.fuzz.coverage_guided SECONDS [TARGET]` needs atheris, which the tests
do not. It runs each target for that long and stops at the first input that raises
anything but a refusal; the input is printed and left in a file by the fuzzer.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

Target = Callable[[bytes], object]


def _text(module: str, reader: str, *more: Any) -> Target:
    def decode(data: bytes) -> object:
        text = data.decode("utf-8", "surrogateescape")
        return getattr(import_module(module), reader)(text, *more)

    return decode


def _dependencies(data: bytes) -> object:
    return import_module("grass.model.jobs.dependencies").read(
        [data.decode("latin-1")], 7
    )


def _body(data: bytes) -> object:
    schemas = import_module("grass.api.routes.request_bodies")
    return import_module("grass.api.payloads").read_body(data, schemas.EnqueueBody)


def _keeper(data: bytes) -> object:
    codec = import_module("grass.keeper.codec")
    codec.decode_entry(data)
    return codec.decode_verb(data)


def _link(data: bytes) -> object:
    reports = import_module("grass.broker.core.workers.message_checks")
    said = import_module("grass.link.frames").decoder_to_broker.decode(data)
    return [reports.check(message) for message in said]


TARGETS: dict[str, Target] = {
    "json5": _text("grass.model.json5", "read_object", "it"),
    "request": _text("grass.model.resources", "request_from"),
    "capacity": _text("grass.model.resources", "capacity_from"),
    "size": _text("grass.model.amounts", "size_bytes"),
    "selector": _text("grass.model.selectors", "read"),
    "array": _text("grass.model.jobs.arrays", "read_array"),
    "duration": _text("grass.model.durations", "seconds"),
    "begin": _text("grass.model.field_readers", "begin_at"),
    "dependencies": _dependencies,
    "body": _body,
    "keeper": _keeper,
    "link": _link,
}


MODULES = (
    "model.resources",
    "api.bodies",
    "model.field_readers",
    "keeper.codec",
    "broker.core.workers.message_checks",
    "link.frames",
)


def _fuzz(name: str, seconds: str) -> None:
    """Run one target in this process; the fuzzer ends the process itself."""
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=["grass"]):
        for module in MODULES:
            import_module(f"grass.{module}")
    from grass.errors import GrassError
    from grass.keeper.codec import BadMessage, BrokenLine

    def one(data: bytes) -> None:
        with contextlib.suppress(GrassError, BadMessage, BrokenLine):
            TARGETS[name](data)

    options = [f"-max_total_time={seconds}", "-timeout=5", "-rss_limit_mb=2048"]
    atheris.Setup([sys.argv[0], *options, "-max_len=2000", "-verbosity=0"], one)
    atheris.Fuzz()


def main(seconds: str = "20", *names: str) -> int:
    """Run the targets one after the other, each in a process of its own."""
    if os.environ.get("GRASS_FUZZ_TARGET"):
        _fuzz(os.environ["GRASS_FUZZ_TARGET"], seconds)
    for name in names or TARGETS:
        print(f"{name}: {seconds} s", flush=True)  # noqa: T201
        words = [sys.executable, "-m", "tests.fuzz.coverage_guided", seconds]
        environment = {**os.environ, "GRASS_FUZZ_TARGET": name}
        ran = subprocess.run(words, env=environment, check=False)
        if ran.returncode:
            return ran.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
