"""What several tests of tasks use: a resource of their own, and a look at processes."""

from pathlib import Path

from grass.resource import Resource


class Seats(Resource):
    """A resource with rules of its own."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def _repr(self) -> str:
        return f"Seats({self.count})"

    def _request(self, res: "Seats") -> bool:
        return self.count >= res.count

    def _alloc(self, res: "Seats") -> "Seats":
        assert self._request(res)
        self.count -= res.count
        return Seats(res.count)

    def _dealloc(self, res: "Seats") -> None:
        self.count += res.count


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
