"""A lab with four GPUs: what its people have enqueued, and what became of it.

Jobs run in real processes of a real daemon, which takes seconds. `rewind` then gives
them the hours that they would have taken.
"""

import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome, Ran
from tests.support.patience import until

from .past import Span, rewind

HERE = Path(__file__).parent
PLAYED = str(HERE.parents[1] / "screens" / "played.py")
NAME = "lab"
GPUS = {0: (96, 71, 287), 1: (88, 66, 262), 2: (47, 54, 148), 3: (83, 68, 251)}
"""How many percent busy, degrees and watts each is."""


Times = list[tuple[float | None, float | None]]
"""When the members of an array began and ended, in minutes before now."""


class Lab:
    """A home with a daemon, four GPUs, jobs and two strangers."""

    def __init__(self, folder: Path) -> None:
        self.home = GrassHome(folder)
        self.home.grass = (sys.executable, PLAYED)
        self.home.environment |= {
            "PYTHONPATH": str(HERE.parents[2]),
            "GRASS_AUTOSTART": "0",
            "TZ": "UTC",
        }
        self._gpus = FakeGpus(folder / "gpus")
        self._strangers: list[subprocess.Popen[bytes]] = []
        self.spans: dict[int, Span] = {}
        self.named: dict[str, int] = {}
        """The jobs that pictures are of."""

    def fill(self) -> None:
        """Have all jobs where they belong."""
        for number, (busy, degrees, watts) in GPUS.items():
            self._gpus.device(
                number,
                name="NVIDIA RTX A6000",
                memory="48G",
                utilization=busy,
                temperature=degrees,
                power_mw=watts * 1000,
                power_limit_mw=300_000,
            )
        self.home.environment.update(self._gpus.environment)
        shutil.copy(HERE / "train.py", self.home.desk)
        self.start()
        self._ended()
        self._running()
        self._waiting()
        self.stop()
        rewind(self.home, self.spans)
        self._stranger(2, "9.6G", "jupyter")
        self._stranger(3, "1.1G", "Xorg")
        self.start()
        until(
            lambda: self.home.client.overview()["totals"],
            "the jobs never came back",
            lambda totals: totals.get("running") == 6,
        )

    def start(self) -> None:
        """Start its daemon, on the played machine."""
        self._daemon = subprocess.Popen(
            [*self.home.grass, "daemon", "--name", NAME],
            env=self.home.environment,
            cwd=self.home.desk,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: self.home.run("show").returncode == 0, "no daemon came up")

    def stop(self) -> None:
        """Stop its daemon; jobs run on."""
        self.home.ok("stop")
        self._daemon.wait()

    def end(self) -> None:
        """End all of it."""
        self.home.end()
        self._daemon.wait()
        for process in self._strangers:
            process.kill()
            process.wait()

    def _stranger(self, unit: int, memory: str, name: str) -> None:
        program = self.home.bin / name
        program.symlink_to(str(shutil.which("sleep")))
        process = subprocess.Popen([str(program), "100000"])
        self._strangers.append(process)
        self._gpus.process(unit, process.pid, memory)

    def _add(self, name: str, span: Span, line: str) -> int:
        id = self.home.enqueue("--name", name, *shlex.split(line))
        self.spans[id] = span
        self.named[name] = id
        return id

    def _add_array(self, name: str, times: Times, span: Span, line: str) -> list[int]:
        """Add an array, whose members began and ended at these times."""
        ids = self.home.enqueue_array("--name", name, *shlex.split(line))
        all_times = [*times, *[(None, None)] * (len(ids) - len(times))]
        for id, (began, ended) in zip(ids, all_times, strict=True):
            self.spans[id] = replace(span, began=began, ended=ended)
        return ids

    def _ended(self) -> None:
        self.home.ok("create-queue", "night", "--capacity", "{gpu:{'3':1}}")
        shards = "echo 1,281,167 images in 1,282 shards"
        done = "--epochs 8 --seed 1"
        ids = [
            self._add(
                "vit-l16",
                Span("mara", 348, 346, 181, {0: 1}, busy=95),
                f"--project vision -g 1 -c 4 -- python train.py vit-l16 {done}",
            ),
            self._add(
                "distilbert",
                Span("jo", 300, 299, 219, {2: 0.5}, busy=39),
                f"--project nlp -g 0.5 -c 2 -- python train.py distilbert {done}",
            ),
            self._add(
                "shards",
                Span("mara", 205, 205, 178, cpu=8),
                f"--project vision -c 8 -- sh -c '{shards}'",
            ),
            self._add(
                "eval-vit",
                Span("mara", 180, 180, 143, {0: 1}, busy=71),
                f"--project vision -g 1 -c 4 -- python train.py vit-l16 {done}",
            ),
            self._add(
                "unet-base",
                Span("ines", 178, 177, 119, {3: 1}, busy=80),
                f"--project vision -g 1 -c 4 -- python train.py unet {done}",
            ),
            self._add(
                "vit-h14",
                Span("mara", 94, 93, 91, {2: 0.5}, busy=88),
                "--project vision -g 0.5 -c 2 -- python train.py vit-h14 --epochs 40",
            ),
            self._add(
                "whisper-small",
                Span("jo", 26, 26, 25, {2: 0.5}, busy=4),
                "--project nlp -g 0.5 -c 2 -- python train.py whisper --lr 1e-4",
            ),
        ]
        self.home.wait(*ids)
        old = self._add("baseline-v1", Span("ines", 140, ended=131), "--hold -- true")
        self.home.ok("cancel", str(old))

    def _running(self) -> None:
        vit = self._add(
            "vit-l16",
            Span("mara", 142, 141, gpu={0: 1}, busy=95),
            "--project vision --gpu-model gpu:0 -g 1 -c 4 -m 24G"
            " -- python train.py vit-l16 --lr 3e-4",
        )
        self._reached(vit)
        sweep = self._add_array(
            "lr-sweep",
            [(157, 101), (157, 96), (101, None), (96, None)],
            Span("ines", 158, gpu={1: 0.5}, busy=43),
            "--project vision --gpu-model gpu:1 -g 0.5 -c 1 --at-most 2"
            " -- python train.py resnet50 --epochs 30 --lr {1}"
            " ::: 1e-2 3e-3 1e-3 3e-4 1e-4 3e-5",
        )
        self._reached(*sweep[2:4])
        bert = self._add(
            "distilbert",
            Span("jo", 66, 63, gpu={2: 0.5}, busy=38),
            "--project nlp --gpu-model gpu:2 -g 0.5 -c 1"
            " -- python train.py distilbert --epochs 40",
        )
        self._reached(bert)
        folds = self._add_array(
            "unet-folds",
            [(118, 82), (82, 45), (45, 28), (28, None)],
            Span("ines", 119, gpu={3: 1}, busy=82),
            "--project vision --gpu-model gpu:3 -g 1 -c 1 --array 1-8%1"
            " -- python train.py unet --epochs 20 --seed {index}",
        )
        self._reached(folds[3])
        self.named["failed"] = folds[2]
        text = self._add(
            "tokenize",
            Span("jo", 24, 23, cpu=4),
            "--project nlp -c 4 -m 8G --time-limit 45m"
            " -- sh -c 'echo shard 311 of 640; sleep 100000'",
        )
        self._reached(text)

    def _waiting(self) -> None:
        self._add(
            "sdxl-lora",
            Span("mara", 19),
            "--project vision -g 2 -c 4 -- python train.py unet --lr 1e-4",
        )
        self._add(
            "report",
            Span("jo", 18),
            f"--project nlp --after {self.named['distilbert']} -- python report.py",
        )
        for model in ("7b", "13b"):
            self._add(
                f"llama-{model}-eval",
                Span("jo", 12),
                f"night --project nlp -g 1 -c 2 -- python eval.py {model}",
            )
        self._add("publish", Span("mara", 9), "--hold -- python publish.py")

    def _reached(self, *ids: int) -> None:
        """Wait until jobs have written all that they write."""
        for id in ids:
            until(partial(self.home.run, "logs", str(id)), "it stays nowhere", _stays)


def _stays(ran: Ran) -> bool:
    return "it/s]" in ran.stdout or "shard 311" in ran.stdout
