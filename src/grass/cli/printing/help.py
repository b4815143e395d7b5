"""Help texts, made from the commands' own descriptions."""

from __future__ import annotations

import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from grass.cli.parsing.options import Command, Option

WIDTH = 79
_ABOUT_AT = 26

SELECTORS = (
    "A JOB or SELECTOR is an id (7), a range (3-9), last, all (every unfinished job), "
    "@project, name~regex, state:failed or queue:q1."
)
RULE = "Words of one kind add up, words of different kinds narrow; --any: the union."
"""How several selectors combine."""


def of_all(commands: Mapping[str, str]) -> str:
    """Return the help of `grass` itself."""
    lines = ["usage: grass COMMAND ...", ""]
    lines += [f"  {name:<14}{about}" for name, about in commands.items()]
    lines += ["", "  grass enqueue -g 1 -- python train.py", ""]
    lines += ["`grass COMMAND --help` says more; `grass --version` prints the version."]
    return "\n".join(lines) + "\n"


def of_command(name: str, command: Command) -> str:
    """Return the help of one command."""
    lines = [f"usage: grass {name} {command.usage}".rstrip(), ""]
    lines += textwrap.wrap(command.about, WIDTH)
    if "JOB" in command.usage or "SELECTOR" in command.usage:
        lines += ["", *textwrap.wrap(SELECTORS, WIDTH)]
    if "SELECTOR..." in command.usage:
        lines += [RULE]
    shown = [option for option in command.options if not option.hidden]
    if shown:
        lines += ["", "options:"]
        for option in shown:
            lines += _option(option)
    lines += ["", "examples:", *(f"  {example}" for example in command.examples)]
    return "\n".join(lines) + "\n"


def spelled(option: Option) -> str:
    """Return an option's names and value as the help shows them."""
    names = ", ".join(option.names)
    if option.value and not option.needs_value:
        return f"{names}[={option.value}]"
    return f"{names} {option.value}".rstrip()


def _option(option: Option) -> list[str]:
    names = f"  {spelled(option)}"
    about = textwrap.wrap(option.about, WIDTH - _ABOUT_AT)
    indented = [" " * _ABOUT_AT + line for line in about]
    if len(names) < _ABOUT_AT - 1:
        first = names.ljust(_ABOUT_AT) + about[0]
        return [first, *indented[1:]]
    return [names, *indented]
