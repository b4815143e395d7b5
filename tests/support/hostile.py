"""Texts that a careless page or terminal would obey, and a home that is full of them.

Each text would leave a mark where it was read as more than text: `hostile` as a global
name, as a tag or as an attribute.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

CODE = "window.hostile=1"
TEXTS = {
    "a script": f"<script>{CODE}</script>",
    "an element": f"<img src=x hostile onerror={CODE}>",
    "the end of an attribute": f'"><svg hostile onload={CODE}>',
    "one of single quotes": f"' hostile onmouseover='{CODE}' x='",
    "the end of an element": "</title></textarea></script></style><hostile>",
    "a link": f"javascript:{CODE}",
    "a link in Markdown": f"[x](javascript:{CODE}) ![x](x)",
    "entities": "&lt;hostile&gt; &#60;hostile&#62; \\u003chostile\\u003e",
    "templates": f"{{{{constructor.constructor('{CODE}')()}}}} ${{{CODE}}} <%=7*7%>",
    "the name of a property": "__proto__",
    "words right to left": "\u202ethgir\u2066\u200f\u2069 \ufeffzero",
    "sequences": f"\x1b]8;;javascript:{CODE}\x07link\x1b]8;;\x07\x1b[31mred\x9b2J",
    "a title": "\x1b]0;hostile\x07\x1b[2J\x1bP1$r\x1b\\",
    "markup of a terminal": "[bold]b[/] [@click=app.quit]x[/] [/nothing] [link=x]",
    "a formula": "=cmd|' /C calc'!A0",
    "lines": "first\nsecond\r\nthird\u2028fourth",
    "very long": "long" * 500,
}
"""What each of them is, and the text."""
LOG = b"\n".join(
    [
        *(text.replace("\n", " ").encode() for text in TEXTS.values()),
        b"nul\x00 bad \xff\xfe\xc0\x80 utf",
        b"10%\r50%\rdone",
        b"last <hostile> line",
    ]
)
"""An output with all of them."""
PROPERTY = "__proto__"
"""A name that is allowed for queues, projects and workers, and is no plain key."""
TAGGED = f"<img/src=x/hostile/onerror={CODE}>"
"""For places that take no blanks."""


def hostile_gpus(folder: Path) -> FakeGpus:
    """Return GPUs whose own name is hostile."""
    gpus = FakeGpus(folder / "gpus")
    gpus.device(0, name=TAGGED, memory="80G", utilization=40)
    return gpus


@contextmanager
def hostile_stranger(gpus: FakeGpus, folder: Path) -> Iterator[None]:
    """Have a process with a hostile name on a GPU."""
    program = folder / "<b hostile>"
    sleep = shutil.which("sleep")
    assert sleep is not None
    os.symlink(sleep, program)
    process = subprocess.Popen([program, "1000"])
    try:
        gpus.process(0, process.pid, "3G")
        yield
    finally:
        process.kill()
        process.wait()


def fill(home: GrassHome, folder: Path) -> int:
    """Give a running daemon hostile jobs in all states; return one that runs."""
    client = home.client
    client.create_queue(PROPERTY, {"capacity": "{gpu:{'0':1}}"})
    client.pause(PROPERTY)
    cwd = folder / TAGGED.replace("/", "")
    cwd.mkdir()
    (cwd / "log").write_bytes(LOG)
    jobs = [
        {"name": text, "command": ["echo", text], "env": {"HOSTILE": text}}
        for text in TEXTS.values()
    ]
    client.enqueue_jobs(jobs, {"queue": PROPERTY, "project": PROPERTY, "require": {}})
    names = {"names": [PROPERTY, "constructor"], "rows": [[TAGGED, "1"]]}
    settings = {"require": {"gpu": 0.5}, "cwd": str(cwd)}
    job = {"name": TEXTS["an element"], "command": "cat log; exit 3"}
    ended = client.enqueue_jobs([job], settings, names)
    output = cwd / "<b hostile>"
    job |= {"command": "cat log; sleep 1000", "output": str(output)}
    runs = client.enqueue_jobs([job], settings)["first"]
    home.wait(ended["first"])
    until(lambda: output.exists() and output.read_bytes() == LOG, "it wrote nothing")
    return int(runs)
