"""A home on a machine with a real GPU."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from grass.errors import NotFound
from tests.support.homes import Document, GrassHome
from tests.support.patience import until

HOLD = str(Path(__file__).with_name("hold.py"))
FIRST_USE_S = 150.0
"""So long the first import of torch and the first use of CUDA may take."""


class GpuHome(GrassHome):
    """A home whose jobs use a real GPU."""

    def gpus(self) -> list[Document]:
        """Return the GPUs of this machine as `grass gpu` tells them."""
        (worker,) = json.loads(self.ok("gpu", "--json"))["workers"]
        assert worker["problem"] is None
        return list(worker["gpus"])

    def gpu_with(self, pid: int | None) -> Document:
        """Return GPU 0 once a process is listed there, or is known to be hidden.

        Without a pid, the process of any job.
        """

        def is_told(gpu: Document) -> bool:
            pids = [one["pid"] for one in gpu["processes"] if pid or one["job"]]
            return bool(gpu["pids_hidden"] or (pid in pids if pid else pids))

        return until(lambda: self.gpus()[0], "nothing is told of a process", is_told)

    def hold(self, *options: str, mib: int = 1024, busy: bool = False) -> int:
        """Enqueue a job that holds memory, and wait until it does."""
        job = self.use(*options, mib=mib, how=["busy"] if busy else [])
        self.await_line(job, "holding")
        return job

    def use(self, *options: str, mib: int, how: Sequence[str] = ()) -> int:
        """Enqueue a job that uses memory."""
        return self.enqueue(*options, "--", sys.executable, HOLD, str(mib), *how)

    def await_line(self, job: int, text: str) -> str:
        """Wait until a job has written something."""

        def written() -> str:
            job_now = self.client.job(job)
            try:
                said = self.logs(job)
            except NotFound:
                said = ""  # It has not begun to write.
            assert job_now["state"] not in ("failed", "lost"), said or job_now
            return said

        missing = f"job {job} never wrote {text!r}"
        return until(written, missing, lambda it: text in it, FIRST_USE_S)

    def wait(self, *ids: int) -> Document:
        """Wait for jobs to end, and return the last one."""
        self.client.wait([str(id) for id in ids], FIRST_USE_S)
        return dict(self.client.job(ids[-1]))
