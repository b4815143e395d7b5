"""The completion scripts of bash, zsh and fish, written from descriptions."""

from __future__ import annotations

from grass.cli.commands import completion
from grass.cli.commands.completion import FILES, FOLDERS, PROGRAMS
from grass.cli.commands.completion_offers import JOBS, QUEUES, UNITS, WORKERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.cli.commands.completion import Choices, Described
    from grass.cli.parsing.options import Option

    Descriptions = list[Described]

_OFFERED = (JOBS, QUEUES, WORKERS, UNITS)
"""What is read when Tab is pressed."""
_ASK = "GRASS_AUTOSTART=0 command grass completion --offer"

_BASH = f"""\
# bash completion for grass

_grass_from() {{
    local found
    mapfile -t found < <(compgen "$@" -- "$current")
    COMPREPLY+=("${{found[@]}}")
}}
_grass_ask() {{ {_ASK} "$1" -- "$2" 2>/dev/null; }}
_grass_offer() {{
    local kind word
    for kind in "$@"; do
        while IFS=$'\t' read -r word _; do
            COMPREPLY+=("$word")
            [[ $word == *[:@~] ]] && compopt -o nospace
        done < <(_grass_ask "$kind" "$current")
    done
}}
_grass_after_program() {{
    local at word queues
    for ((at = 2; at < ${{#words[@]}} - 1; at++)); do
        word=${{words[at]}}
        if [[ $word == -- ]]; then
            ((at + 2 < ${{#words[@]}}))
            return
        elif [[ $word == -* ]]; then
            [[ " $1 " == *" $word "* ]] && ((at++))
        else
            mapfile -t queues < <(_grass_ask queues "$word")
            [[ " ${{queues[*]}} " == *" $word "* ]] || return 0
        fi
    done
    return 1
}}

_grass_find() {{
    if ((${{#words[@]}} == 2)); then
        _grass_from -W '@names@ --help --version'
        return
    fi
    case "$command" in
@programs@
    esac
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

_grass() {{
    local line=${{COMP_LINE:0:COMP_POINT}} words current before command head
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${{words[-1]}} before=${{words[-2]}} command=${{words[1]}}
    COMPREPLY=()
    _grass_find
    # Readline replaces only what comes after a colon or an at sign.
    head=${{current%"${{current##*[:@]}}"}}
    COMPREPLY=("${{COMPREPLY[@]#"$head"}}")
}}

complete -F _grass grass
"""
_BASH_FILES = (
    "_grass_after_program '{}' && {{ compopt -o filenames; _grass_from -f; return; }} "
)
_BASH_KINDS = {
    FILES: "-f",
    FOLDERS: "-d",
    # A list of all programs would be too long.
    PROGRAMS: "${current:+-c}",
}

_ZSH = f"""\
#compdef grass
# zsh completion for grass

_grass_offer() {{
    local line
    local -a whole begun
    # zsh puts options of its own before the kind.
    for line in ${{(f)"$({_ASK} $argv[-1] -- "$PREFIX" 2>/dev/null)"}}; do
        line=${{line%%$'\t'*}}
        if [[ $line == *[:@~] ]]; then begun+=($line); else whole+=($line); fi
    done
    compadd -a whole
    compadd -S '' -a begun
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
    FILES: "_files",
    FOLDERS: "_files -/",
    PROGRAMS: "_command_names -e",
}

_FISH = f"""\
# fish completion for grass

function __grass_offer
    env {_ASK.replace("command ", "")} $argv[1] -- (commandline -ct) 2>/dev/null
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
    FILES: "(__fish_complete_path)",
    FOLDERS: "(__fish_complete_directories)",
    PROGRAMS: "(__fish_complete_command) (__fish_complete_path)",
}


def bash(commands: Descriptions) -> str:
    """Write the script for bash."""
    values, options, words, programs = [], [], [], []
    for command in commands:
        if command.runs_program:
            taking = [o for o in command.options if o.needs_value]
            names = " ".join(name for option in taking for name in option.names)
            programs.append(f"        {command.name}) {_BASH_FILES.format(names)};;")
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
        .replace("@programs@", "\n".join(programs))
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
    asked = [f"-W '{' '.join(choices.words)}'"] if choices.words else []
    others = [kind for kind in choices.kinds if kind in _BASH_KINDS]
    asked += [_BASH_KINDS[kind] for kind in others]
    asked += ["-f"] if PROGRAMS in others else []
    written = ["compopt -o filenames"] if others else []
    written += [f"_grass_from {' '.join(asked)}"] if asked else []
    offered = [kind for kind in choices.kinds if _is_offered(kind)]
    written += [f"_grass_offer {' '.join(offered)}"] if offered else []
    return "".join(f"{one}; " for one in written)


def _is_offered(kind: str) -> bool:
    return kind.partition("=")[0] in _OFFERED


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
        alternatives = f"_alternative 'x:x:{_zsh_kind(first)}' 'c:c:_command_names -e'"
        action = alternatives.replace("'", '"')
        return [_quoted(f"1:command:{{{action}}}"), _quoted("*:file:_files")]
    if len(choices.kinds) + bool(choices.words) > 1:
        ways = [f'"{kind}:{kind}:{_zsh_kind(kind)}"' for kind in choices.kinds]
        if choices.words:
            ways.append(f'"word:word:({" ".join(choices.words)})"')
        pairs = " ".join(ways)
        return [_quoted(f"*:what:{{_alternative {pairs}}}")]
    return [_quoted(f"*:what:{_zsh_action(choices)}")]


def _zsh_action(choices: Choices) -> str:
    if choices.words:
        return f"({' '.join(choices.words)})"
    return _zsh_kind(choices.kinds[0]) if choices.kinds else " "


def _zsh_kind(kind: str) -> str:
    return f"_grass_offer {kind}" if _is_offered(kind) else _ZSH_KINDS[kind]


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
    return " ".join([*choices.words, *map(_fish_kind, choices.kinds)])


def _fish_kind(kind: str) -> str:
    return f"(__grass_offer {kind})" if _is_offered(kind) else _FISH_KINDS[kind]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


WRITERS: dict[str, Callable[[Descriptions], str]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
}
