"""`docs/reference/cli.md`, made from the commands' own descriptions.

`python -m grass.cli.reference > docs/reference/cli.md` writes it; a test compares.
"""

import sys

from grass.cli.main import COMMANDS, command
from grass.cli.printing.help import RULE, SELECTORS, spelled

_OPENING = f"""# Command line

{SELECTORS} {RULE}

What was asked for goes to stdout, everything else to stderr. `--json` prints one JSON
document; on `enqueue` and `create-queue`, where `--json` is an old name for `--require`
and `--capacity`, it is `--format json`. Options are never abbreviated.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | the call was malformed |
| 3 | no daemon, and none may be started; or a broker that cannot be reached |
| 4 | a job, queue or program that was named does not exist |
| 5 | refused in the present state |
| 6 | the request can never be met |
| 7 | timed out |
| 130 | interrupted with Ctrl-C |

`wait` of one job has exit codes of its own, see there. A command that finds no daemon
starts one, except after `grass stop` or with `GRASS_AUTOSTART=0`. `GRASS_HOME` moves
the state directory.

A command speaks to the broker that `--broker` names, else to that of `GRASS_BROKER`,
else to the one that this machine has joined, else to this machine's own daemon, which
is also what the word `local` means. What is about this machine itself (`create-queue`,
`edit-queue`, `delete-queue`, `capacity`, units in `drain` and `resume`, `start`,
`stop`, `restart`, `config`) goes to its own daemon.
"""


def text() -> str:
    """Return the whole page."""
    return "\n".join([_OPENING, *(_section(name) for name in COMMANDS)])


def _section(name: str) -> str:
    described = command(name)
    lines = [f"## grass {name}", ""]
    lines += ["```", f"grass {name} {described.usage}".rstrip(), "```", ""]
    lines += [described.about, ""]
    shown = [option for option in described.options if not option.hidden]
    if shown:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| `{_cell(spelled(one))}` | {_cell(one.about)} |" for one in shown]
        lines.append("")
    lines += ["```sh", *described.examples, "```", ""]
    return "\n".join(lines)


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(text())
