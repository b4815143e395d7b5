"""What a runner does with a task: its arguments, its result, and how it ends."""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from grass.keeper.runner_line import Answer, LineTask, encoded, read_answer, read_task
from grass.tasks.children.packed_frames import RAISED, VALUE, pack, unpack_result
from grass.tasks.runner.calls import MOST_FUNCTIONS, Calls, Outcome

NODE = os.uname().nodename
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


class Fails:
    """A value that is written, and cannot be read."""

    def __reduce__(self) -> Any:
        return divmod, (1, 0)


class Shop:
    """A folder with functions, arguments and results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = Calls()
        self._count = 0

    def task(self, function: Any, /, *args: Any, **fields: Any) -> LineTask:
        self._count += 1
        path = self.folder / f"function-{self._count}"
        path.write_bytes(cloudpickle.dumps(function, 5))
        inline = base64.b64encode(b"".join(pack((args, {})))).decode() if args else ""
        result = str(self.folder / "deep" / f"{self._count}.result")
        task = LineTask("a", str(self.folder), 0o022, str(path), "", inline, result)
        return task._replace(python=HERE, name="f")._replace(**fields)

    def run(
        self, function: Any, /, *args: Any, **fields: Any
    ) -> tuple[Outcome, int, Any]:
        task = self.task(function, *args, **fields)
        outcome = self.calls.call(task)
        return outcome, *unpack_result(Path(task.result).read_bytes())


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    # A task is called in its own directory.
    monkeypatch.chdir(tmp_path)
    return Shop(tmp_path)


def test_a_value_comes_back_whole_and_no_draft_is_left(shop: Shop) -> None:
    assert shop.run(lambda one, two: [one, two], 1, "x") == (
        Outcome(0),
        VALUE,
        [1, "x"],
    )
    assert [path.name for path in (shop.folder / "deep").iterdir()] == ["1.result"]


def test_large_arguments_are_mapped_and_may_be_written_to(shop: Shop) -> None:
    class Buffer:
        def __init__(self, data: Any) -> None:
            self.data = data

        def __reduce_ex__(self, _protocol: Any) -> Any:
            return Buffer, (pickle.PickleBuffer(self.data),)

    blob = shop.folder / "blob"
    blob.write_bytes(b"".join(pack(((Buffer(bytearray(1 << 20)),), {}))))
    before = blob.read_bytes()

    def changes(buffer: Any) -> int:
        view = memoryview(buffer.data)
        view[0] = 7
        return view[0] + len(view)

    assert shop.run(changes, arguments=str(blob))[2] == 7 + (1 << 20)
    assert blob.read_bytes() == before


def test_a_function_is_read_once_for_each_path(shop: Shop) -> None:
    def counts(seen: Any = []) -> int:  # noqa: B006 -- it is how a function keeps
        seen.append(1)
        return len(seen)

    task = shop.task(counts)
    for expected in (1, 2, 3):
        shop.calls.call(task)
        assert unpack_result(Path(task.result).read_bytes())[1] == expected
    for _ in range(MOST_FUNCTIONS):
        shop.run(int)
    shop.calls.call(task)
    assert unpack_result(Path(task.result).read_bytes())[1] == 1


def test_a_value_that_cannot_be_pickled_is_an_exception_that_names_the_task(
    shop: Shop,
) -> None:
    outcome, status, (error, shown) = shop.run(threading.Lock)
    assert (outcome.code, status, type(error)) == (1, RAISED, TypeError)
    assert "result of `f`, a lock, cannot be pickled" in str(error)
    assert "cannot be pickled" in shown


def test_an_exception_that_cannot_be_read_elsewhere_is_told_as_text(shop: Shop) -> None:
    class Odd(Exception):
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def __str__(self) -> str:
            return f"it is {self.lock.locked()}"

    def holds() -> None:
        raise Odd

    outcome, status, (error, shown) = shop.run(holds)
    assert (outcome, status, type(error)) == (Outcome(1), RAISED, RuntimeError)
    assert str(error) == "Odd: it is False"
    assert "in holds" in shown


def test_an_exception_whose_class_takes_other_arguments_comes_back(shop: Shop) -> None:
    class Odd(Exception):
        def __init__(self, one: int, *, two: int) -> None:
            super().__init__(f"{one} and {two}")
            self.two = two

    def raises() -> None:
        raise Odd(1, two=2)

    outcome, status, (error, shown) = shop.run(raises)
    assert (outcome, status, type(error).__name__) == (Outcome(1), RAISED, "Odd")
    assert (str(error), error.two) == ("1 and 2", 2)
    assert "in raises" in shown

    class Again(Exception):
        def __init__(self, code: int) -> None:
            super().__init__(f"code {code}")

    def raises_again() -> None:
        raise Again(5)

    assert str(shop.run(raises_again)[2][0]) == "code 5"


def test_a_module_that_is_missing_is_told_with_the_machine(shop: Shop) -> None:
    def imports() -> None:
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401

    outcome, _, (error, shown) = shop.run(imports)
    assert (type(error), error.name) == (ModuleNotFoundError, "no_such_module")
    assert str(error) == outcome.reason
    assert f"which Python {HERE} on {os.uname().nodename}" in str(error)
    assert "No module named" in shown


def test_arguments_that_cannot_be_read_are_told_as_such(shop: Shop) -> None:
    inline = base64.b64encode(b"".join(pack(((Fails(),), {})))).decode()
    outcome, _, (error, _) = shop.run(int, inline=inline)
    assert outcome.reason is not None
    assert outcome.reason.startswith("the arguments of `f` cannot be read by Python")
    assert ": ZeroDivisionError: " in outcome.reason
    assert "sent by" not in outcome.reason
    assert str(error) == outcome.reason


@pytest.mark.parametrize(
    ("leaves", "code", "status"),
    [(None, 0, VALUE), (0, 0, VALUE), (3, 3, RAISED), (300, 44, RAISED)],
)
def test_sys_exit_is_the_exit_code(
    shop: Shop, leaves: int | None, code: int, status: int
) -> None:
    outcome, found, _ = shop.run(sys.exit, leaves)
    assert (outcome.code, found) == (code, status)


def test_what_cannot_be_called_is_told_in_one_line(shop: Shop) -> None:
    broken = shop.folder / "broken"
    broken.write_bytes(b"no pickle")
    gone = str(shop.folder / "gone")
    for fields, words in (
        ({"function": str(broken)}, "cannot be read by Python"),
        ({"cwd": gone}, f"directory `{gone}`"),
        (
            {"python": "3.99"},
            f"`f` was sent by Python 3.99, and {NODE} runs it with Python {HERE}",
        ),
    ):
        outcome, status, (error, _) = shop.run(int, **fields)
        assert (outcome.code, status) == (1, RAISED)
        assert outcome.reason is not None
        assert words in outcome.reason
        assert "\n" not in outcome.reason
        assert str(error) == outcome.reason


def test_a_result_that_cannot_be_written_fails_the_task(shop: Shop) -> None:
    task = shop.task(int, result="/proc/nothing/here.result")
    outcome = shop.calls.call(task)
    assert outcome.code == 1
    assert "could not be written" in (outcome.reason or "")


def test_a_child_that_returns_from_the_function_writes_no_result(shop: Shop) -> None:
    def forks() -> int | str:
        child = os.fork()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else "child"

    here, task = os.getpid(), shop.task(forks)
    outcome = shop.calls.call(task)
    if os.getpid() != here:
        os._exit(7 if Path(task.result).exists() else outcome.code)
    assert unpack_result(Path(task.result).read_bytes()) == (VALUE, 0)


def test_lines_of_another_version_are_understood() -> None:
    task = LineTask("a", "/", 0o022, "/f", env={"A": "\udcff"})
    assert read_task(encoded(task)) == task
    assert read_task(encoded(task)[:-2] + b',"later":1}\n') == task
    assert read_answer(b'{"id":"a","code":3}') == Answer("a", 3)
    for bad in (b"[]", b"{}", b'{"id":"a","code":256}', b"x"):
        with pytest.raises((TypeError, ValueError)):
            read_answer(bad)


def test_a_runner_without_a_line_says_that_its_keeper_is_old() -> None:
    words = [sys.executable, "-m", "grass.tasks.runner"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the keeper is of an older version" in done.stderr


def test_a_runner_is_small() -> None:
    """It may import no more than it needs, as many of them wait."""
    shown = "import sys, grass.tasks.runner.serving, cloudpickle; print(*sys.modules)"
    words = [sys.executable, "-c", shown]
    loaded = set(subprocess.check_output(words, text=True).split())
    heavy = {"asyncio", "anyio", "msgspec", "ssl", "grass.client"}
    assert not loaded & heavy
