"""A resource with a rule of its own: at most so many calls of a service at a time."""

import grass
from grass.resource import Resource


class Calls(Resource):
    """Calls of a service that may run at the same time."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def _repr(self) -> str:
        return f"Calls({self.count})"

    def _request(self, asked: "Calls") -> bool:
        return self.count >= asked.count

    def _alloc(self, asked: "Calls") -> "Calls":
        self.count -= asked.count
        return Calls(asked.count)

    def _dealloc(self, held: "Calls") -> None:
        self.count += held.count


running = 0


async def call(number: int) -> int:
    """Stand in for a call; return how many ran with it."""
    global running  # noqa: PLW0603 -- all calls run in this process
    import anyio

    running += 1
    most = running
    await anyio.sleep(0.001)
    running -= 1
    return most


async def main() -> None:
    """Make ten calls, two at a time."""
    async with grass.open_waitgroup() as wg:
        for number in range(10):
            wg.submit(Calls(1), call, number)
    print(len(wg.results), "calls, at most", max(wg.results), "at a time")


grass.run_combine(main, [], grass.Cores(1) & Calls(2))
