"""GPUs that tests make up: a stand-in for NVIDIA's library and the file that drives it.

    gpus = FakeGpus(tmp_path / "gpus")
    gpus.device(0, memory="80G")
    home.environment.update(gpus.environment)

Every process with that environment, daemons and their children too, sees these devices
as if they were there; each change below is seen by the next look. A process that has
ended is on no device any more. A job puts itself on its devices with
`gpus.program(home)`, which makes a program `use-gpu`: `use-gpu 8G` holds 8 GiB of every
device in its CUDA_VISIBLE_DEVICES until it is killed.
"""

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

from grass.model.amounts import size_bytes
from tests.support.homes import GrassHome

SOURCE = Path(__file__).parent / "nvml" / "nvml.c"
USE_GPU = Path(__file__).parent / "nvml" / "use_gpu.py"

LEVELS = {"same board": 0, "same switch": 10, "same cpu": 40, "far": 50}

DRIVER_NOT_LOADED = 9
UNKNOWN_ERROR = 999


@cache
def library_folder() -> Path:
    """Build the stand-in once for each process of tests, and return its folder."""
    return _built(SOURCE, "libnvidia-ml.so.1").parent


@cache
def cuda_library() -> Path:
    """Build a stand-in for the CUDA driver, which sees the same devices."""
    return _built(SOURCE.with_name("cuda.c"), "libcuda.so.1")


def _built(source: Path, name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="grass-nvml-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    warnings = ["-Wall", "-Wextra", "-Werror"]
    command = ["cc", "-shared", "-fPIC", "-O1", *warnings, "-pthread"]
    command += [f"-Wl,-soname,{name}", "-o", str(folder / name), str(source)]
    subprocess.run(command, check=True)
    return folder / name


class FakeGpus:
    """The devices that the stand-in tells of, and what happens to them."""

    def __init__(self, path: Path) -> None:
        """Begin without a device; `path` is the file to write."""
        self.path = path
        self._processes = path.with_name(path.name + ".processes")
        self._processes.mkdir(exist_ok=True)
        self._version = path.with_name(path.name + ".version")
        self._library: dict[str, object] = {"hang": 0, "error": 0}
        self._devices: dict[str, dict[str, object]] = {}
        self._on: dict[tuple[str, int, str], dict[str, object]] = {}
        self._pairs: dict[tuple[int, int], dict[str, object]] = {}
        self._xids: list[tuple[int, int]] = []
        self._missing: list[str] = []
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """What a process must have in its environment to see these devices."""
        return {
            "LD_LIBRARY_PATH": str(library_folder()),
            "FAKE_NVML_FILE": str(self.path),
        }

    def device(self, number: int, **facts: Any) -> None:
        """Add a device, bring a removed one back, or change facts of one.

        Facts are `memory`, `reserved` and `used` (sizes; the last one is beside what
        processes use), `name`, `uuid`, `utilization`, `temperature`, `power_mw`,
        `power_limit_mw`, `numa`, `cores` (a mask), `ecc` (uncorrected errors),
        `recovery` (NVML's recovery action), `mig` (1: on).
        """
        known = self._devices.get(str(number)) or {
            "name": "NVIDIA Stand-in",
            "uuid": f"GPU-{number:08d}-0000-0000-0000-000000000000",
            "memory": size_bytes("80G"),
            "temperature": 40,
            "power_mw": 100_000,
            "power_limit_mw": 700_000,
        }
        self._devices[str(number)] = {**known, **_in_bytes(facts)}
        self._write()

    def mig(self, number: int, instance: int, **facts: Any) -> None:
        """Divide a device: add a MIG instance to it."""
        self._devices[str(number)]["mig"] = 1
        self._devices[f"{number}.{instance}"] = {
            "name": "NVIDIA Stand-in MIG 1g.10gb",
            "uuid": f"MIG-{number:08d}-{instance:04d}-0000-0000-000000000000",
            "memory": size_bytes("10G"),
            **_in_bytes(facts),
        }
        self._write()

    def remove(self, unit: int | str) -> None:
        """Take a device out of the machine, or a MIG instance away."""
        self._devices.pop(str(unit), None)
        self._write()

    def process(
        self,
        unit: int | str,
        pid: int,
        memory: str | int | None,
        kind: Literal["compute", "graphics", "mps"] = "compute",
        **facts: Any,
    ) -> None:
        """Put a process on a device, or change what it holds.

        `memory` None is a size that is not told. `utilization` is its own; `always=1`
        keeps it there without such a process, as in a container.
        """
        told = {} if memory is None else _in_bytes({"memory": memory})
        self._on[str(unit), pid, kind] = {"kind": kind, **told, **facts}
        self._write()

    def leave(self, unit: int | str, pid: int) -> None:
        """Take a process off a device."""
        self._on = {
            key: facts for key, facts in self._on.items() if key[:2] != (str(unit), pid)
        }
        self._write()

    def fault(self, number: int, what: str) -> None:
        """Have a device fail: `lost`, `hang`, `ecc`, `slow 500` (ms) or `xid 79`."""
        word, _, value = what.partition(" ")
        if word == "xid":
            self._xids.append((number, int(value)))
        elif word == "slow":
            self._devices[str(number)]["slow_ms"] = int(value)
        elif word == "ecc":
            device = self._devices[str(number)]
            device["ecc"] = int(str(device.get("ecc", 0))) + 1
        else:
            self._devices[str(number)][word] = 1
        self._write()

    def mend(self, number: int) -> None:
        """End what `fault` did to a device; what was counted stays counted."""
        for word in ("lost", "hang", "slow_ms"):
            self._devices[str(number)].pop(word, None)
        self._write()

    def hang(self) -> None:
        """Have every call of the library hang until `work`."""
        self._set_library(hang=1, error=0)

    def fail(self, error: int = DRIVER_NOT_LOADED) -> None:
        """Have the library fail with NVML's error number until `work`."""
        self._set_library(hang=0, error=error)

    def work(self) -> None:
        """Have the library work again."""
        self._set_library(hang=0, error=0)

    def without(self, *functions: str) -> None:
        """Have the library lack functions, as those of older drivers do."""
        self._missing = list(functions)
        self._write()

    def pair(self, one: int, other: int, nearness: str) -> None:
        """Say how near two devices are, in the words of a topology."""
        linked = nearness == "nvlink"
        level = LEVELS["same cpu" if linked else nearness]
        self._pairs[one, other] = {"level": level, "nvlink": int(linked)}
        self._write()

    def program(self, home: GrassHome) -> Path:
        """Give the commands and jobs of a home the program `use-gpu`."""
        python = shlex.quote(sys.executable)
        line = f'exec {python} -S {shlex.quote(str(USE_GPU))} "$@"'
        return home.add_program("use-gpu", line)

    @contextmanager
    def stranger(self, unit: int | str, memory: str) -> Iterator[int]:
        """Have a process that is no job hold memory of a device; gives its pid."""
        process = subprocess.Popen(["sleep", "1000"])
        try:
            self.process(unit, process.pid, memory)
            yield process.pid
        finally:
            process.kill()
            process.wait()

    def _set_library(self, **facts: object) -> None:
        self._library = facts
        self._write()

    def _write(self) -> None:
        lines = [
            f"library now{_facts(self._library)}",
            *(f"without {name}" for name in self._missing),
            *(f"device {unit}{_facts(it)}" for unit, it in self._devices.items()),
            *(
                f"process {unit} {pid}{_facts(it)}"
                for (unit, pid, _), it in self._on.items()
            ),
            *(f"pair {a} {b}{_facts(it)}" for (a, b), it in self._pairs.items()),
            *(
                f"xid {device} {code} {serial}"
                for serial, (device, code) in enumerate(self._xids[-60:], 1)
            ),
        ]
        aside = self.path.with_name(self.path.name + ".new")
        aside.write_text("\n".join(lines) + "\n")
        os.replace(aside, self.path)
        # In place: processes that use the library have it mapped.
        descriptor = os.open(self._version, os.O_WRONLY | os.O_CREAT, 0o666)
        os.write(descriptor, os.urandom(8))
        os.close(descriptor)


def _facts(facts: dict[str, object]) -> str:
    return "".join(
        f" {key}={str(value).replace(' ', '_')}" for key, value in facts.items()
    )


def _in_bytes(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts with sizes such as `8G` as bytes."""
    return {
        key: size_bytes(str(value)) if key in ("memory", "reserved", "used") else value
        for key, value in facts.items()
    }
