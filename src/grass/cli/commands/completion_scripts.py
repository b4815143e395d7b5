"""The completion scripts of bash, zsh and fish, written from descriptions."""

from __future__ import annotations

from grass.cli.commands import completion
from grass.cli.commands.completion import (
    FILES,
    FOLDERS,
    JOBS,
    PROGRAMS,
    QUEUES,
    WORKERS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.cli.commands.completion import Choices, Described
    from grass.cli.parsing.options import Option

    Descriptions = list[Described]

_ASK = "GRASS_AUTOSTART=0 command grass show"

_BASH = f"""\
# bash completion for grass

_grass_jobs() {{ {_ASK} -q 2>/dev/null; echo last all; }}
_grass_queues() {{ {_ASK} --queues -q 2>/dev/null; }}
_grass_workers() {{ {_ASK} --workers -q 2>/dev/null; }}
_grass_from() {{ mapfile -t COMPREPLY < <(compgen "$@" -- "$current"); }}

_grass() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local command=${{COMP_WORDS[1]}}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _grass_from -W '@names@ --help --version'
        return
    fi
    case "$command $before" in
@values@
    esac
    case "$command $current" in
@options@
    esac
    case "$command" in
@words@
    esac
}}

complete -F _grass grass
"""
_BASH_NAMES = {
    JOBS: "$(_grass_jobs)",
    QUEUES: "$(_grass_queues)",
    WORKERS: "$(_grass_workers)",
}
_BASH_KINDS = {
    FILES: "-f",
    FOLDERS: "-d",
    # A list of all programs would be too long.
    PROGRAMS: "${current:+-c}",
}

_ZSH = f"""\
#compdef grass
# zsh completion for grass

_grass_jobs() {{
    local -a jobs=(${{(f)"$({_ASK} -q 2>/dev/null)"}} last all)
    compadd -a jobs
}}
_grass_queues() {{
    local -a queues=(${{(f)"$({_ASK} --queues -q 2>/dev/null)"}})
    compadd -a queues
}}
_grass_workers() {{
    local -a workers=(${{(f)"$({_ASK} --workers -q 2>/dev/null)"}})
    compadd -a workers
}}

_grass() {{
    local curcontext=$curcontext state line
    local -a commands=(
@commands@
    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
@cases@
    esac
}}

compdef _grass grass
"""
_ZSH_KINDS = {
    JOBS: "_grass_jobs",
    QUEUES: "_grass_queues",
    WORKERS: "_grass_workers",
    FILES: "_files",
    FOLDERS: "_files -/",
    PROGRAMS: "_command_names -e",
}

_FISH = f"""\
# fish completion for grass

function __grass_jobs
    env {_ASK.replace("command ", "")} -q 2>/dev/null
    printf '%s\\n' last all
end
function __grass_queues
    env {_ASK.replace("command ", "")} --queues -q 2>/dev/null
end
function __grass_workers
    env {_ASK.replace("command ", "")} --workers -q 2>/dev/null
end

function __grass_first
    test (count (commandline -opc)) -eq 1
end
function __grass_in
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

complete -c grass -f
"""
_FISH_KINDS = {
    JOBS: "(__grass_jobs)",
    QUEUES: "(__grass_queues)",
    WORKERS: "(__grass_workers)",
    FILES: "(__fish_complete_path)",
    FOLDERS: "(__fish_complete_directories)",
    PROGRAMS: "(__fish_complete_command)",
}


def bash(commands: Descriptions) -> str:
    """Write the script for bash."""
    values, options, words = [], [], []
    for command in commands:
        for option in command.options:
            choice = _bash_choice(completion.value(option))
            values += [
                f'        "{command.name} {name}") {choice}return ;;'
                for name in option.names
                if option.needs_value
            ]
        names = " ".join(name for one in command.options for name in one.names)
        options.append(
            f"        \"{command.name} -\"*) _grass_from -W '{names} --help'; return ;;"
        )
        words.append(f"        {command.name}) {_bash_choice(command.plain)};;")
    return (
        _BASH.replace("@names@", " ".join(one.name for one in commands))
        .replace("@values@", "\n".join(values))
        .replace("@options@", "\n".join(options))
        .replace("@words@", "\n".join(words))
    )


def zsh(commands: Descriptions) -> str:
    """Write the script for zsh."""
    names = [f"        {_quoted(f'{one.name}:{one.about}')}" for one in commands]
    cases = []
    for command in commands:
        rules = [_quoted("--help[say more]")]
        rules += [_zsh_option(option) for option in command.options]
        rules += _zsh_words(command.plain)
        lines = " \\\n            ".join(["_arguments -s", *rules])
        cases.append(f"    {command.name})\n        {lines}\n        ;;")
    return _ZSH.replace("@commands@", "\n".join(names)).replace(
        "@cases@", "\n".join(cases)
    )


def fish(commands: Descriptions) -> str:
    """Write the script for fish."""
    lines = []
    for command in commands:
        about = _fish_quoted(command.about)
        lines.append(f"complete -c grass -n __grass_first -a {command.name} -d {about}")
        inside = f"complete -c grass -n '__grass_in {command.name}'"
        offered = _fish_choice(command.plain)
        lines += [f'{inside} -a "{offered}"'] if offered else []
        lines += [f"{inside} {_fish_option(option)}" for option in command.options]
    return _FISH + "\n".join(lines) + "\n"


def _bash_choice(choices: Choices) -> str:
    names = [_BASH_NAMES[kind] for kind in choices.kinds if kind in _BASH_NAMES]
    others = [kind for kind in choices.kinds if kind in _BASH_KINDS]
    asked = []
    if names:
        asked.append(f'-W "{" ".join([*choices.words, *names])}"')
    elif choices.words:
        asked.append(f"-W '{' '.join(choices.words)}'")
    asked += [_BASH_KINDS[kind] for kind in others]
    if not asked:
        return ""
    with_files = " -f" if PROGRAMS in others else ""
    marked = "compopt -o filenames; " if others else ""
    return f"{marked}_grass_from {' '.join(asked)}{with_files}; "


def _zsh_option(option: Option) -> str:
    about = option.about.replace("[", "\\[").replace("]", "\\]")
    value = ""
    if option.value:
        choices = completion.value(option)
        action = _zsh_action(choices)
        value = (
            f"{'' if option.needs_value else ':'}:{_zsh_name(option.value)}:{action}"
        )
    forms = [f"*{name}[{about}]{value}" for name in option.names]
    return " ".join(map(_quoted, forms))


def _zsh_words(choices: Choices) -> list[str]:
    if not choices.kinds and not choices.words:
        return []
    if PROGRAMS in choices.kinds:
        first = QUEUES if QUEUES in choices.kinds else FILES
        alternatives = f"_alternative 'x:x:{_ZSH_KINDS[first]}' 'c:c:_command_names -e'"
        action = alternatives.replace("'", '"')
        return [_quoted(f"1:command:{{{action}}}"), _quoted("*:file:_files")]
    if len(choices.kinds) + bool(choices.words) > 1:
        ways = [f'"{kind}:{kind}:{_ZSH_KINDS[kind]}"' for kind in choices.kinds]
        if choices.words:
            ways.append(f'"word:word:({" ".join(choices.words)})"')
        pairs = " ".join(ways)
        return [_quoted(f"*:what:{{_alternative {pairs}}}")]
    return [_quoted(f"*:what:{_zsh_action(choices)}")]


def _zsh_action(choices: Choices) -> str:
    if choices.words:
        return f"({' '.join(choices.words)})"
    return _ZSH_KINDS[choices.kinds[0]] if choices.kinds else " "


def _zsh_name(value: str) -> str:
    return value.replace("|", " or ").replace(":", " ")


def _fish_option(option: Option) -> str:
    words = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        for name in option.names
    ]
    if option.needs_value:
        words.append("-x")
    offered = _fish_choice(completion.value(option))
    if offered:
        words.append(f'-a "{offered}"')
    return " ".join([*words, "-d", _fish_quoted(option.about)])


def _fish_choice(choices: Choices) -> str:
    return " ".join([*choices.words, *(_FISH_KINDS[kind] for kind in choices.kinds)])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


WRITERS: dict[str, Callable[[Descriptions], str]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
}
