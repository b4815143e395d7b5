"""The backend `grass` of joblib: import this, then `parallel_config("grass")`.

Each batch of calls is a task of `grass.Executor`, so `n_jobs` cores are asked for, and
`parallel_config("grass", request={"gpu": 0.5})` asks for something else for each batch.
"""

from __future__ import annotations

import os

from joblib.parallel import (
    AutoBatchingMixin,
    ParallelBackendBase,
    register_parallel_backend,
)

from grass.resource import Cores
from grass.tasks.executor import Executor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any

    from grass.resource import Asked


class TaskBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs what joblib dispatches as tasks of one program."""

    supports_retrieve_callback = True
    supports_return_generator = True
    default_n_jobs = -1

    def __init__(
        self,
        *,
        request: Asked = None,
        rpw: Asked = None,
        **more: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(**more)
        self._request, self._rpw = request, rpw
        self._executor: Executor | None = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many run at a time; less than 0 counts from all cores."""
        if n_jobs == 0:
            raise ValueError(
                "n_jobs == 0 has no meaning: give 1 or more, or -1 for all"
            )
        cores = len(os.sched_getaffinity(0))
        wanted = 1 if n_jobs is None else n_jobs
        return wanted if wanted > 0 else max(1, cores + 1 + wanted)

    def configure(
        self,
        n_jobs: int = 1,
        parallel: Any = None,  # noqa: ANN401
        **_options: Any,  # noqa: ANN401
    ) -> int:
        """Begin to take calls."""
        self.parallel = parallel
        count = self.effective_n_jobs(n_jobs)
        rpw = self._rpw
        if rpw is None and self._request is None:
            rpw = Cores(count)
        self._executor = Executor(self._request, rpw=rpw)
        return count

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Future[Any]], None]
    ) -> Future[Any]:
        """Call a function, and then the callback."""
        assert self._executor is not None
        # As an argument: it holds the data, of which no child is to keep a copy.
        future = self._executor.submit(_call, func)
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:  # noqa: ANN401
        """Return the result of a call that has ended."""
        return out.result()

    def terminate(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Kill what runs, after an exception of one call."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)


def _call(batch: Callable[[], Any]) -> Any:  # noqa: ANN401
    return batch()


register_parallel_backend("grass", TaskBackend)
