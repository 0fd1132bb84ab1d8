"""Completion scripts for bash, zsh and fish, written from a list of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from plainmind.cli.completing import Completed, Option, kind_of

_BASH = """\
# Completion of plainmind for bash: eval "$(plainmind completion bash)"
_plainmind() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" options="" words="" kind="" i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${COMP_WORDS[i]}" in
            @VALUED@) ((i++)) ;;
            -*) ;;
            *)
                if [[ -z "$command" ]]; then command="${COMP_WORDS[i]}"
                elif [[ "$command" == config ]]; then command="config ${COMP_WORDS[i]}"
                fi ;;
        esac
    done
    case "$before" in
@VALUES@
    esac
    case "$command" in
@COMMANDS@
    esac
    if [[ "$word" == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    elif [[ "$kind" == memory ]]; then
        local IFS=$'\\n'
        COMPREPLY=($(compgen -W "$(plainmind list --quiet 2>/dev/null)" -- "$word"))
    elif [[ "$kind" == folders ]]; then
        COMPREPLY=($(compgen -d -- "$word"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
}
complete -o filenames -o bashdefault -F _plainmind plainmind
"""

_ZSH = """\
#compdef plainmind
# Completion of plainmind for zsh: eval "$(plainmind completion zsh)"
_plainmind_paths() {
    local -a paths
    paths=(${(f)"$(plainmind list --quiet 2>/dev/null)"})
    compadd -a paths
}
_plainmind() {
    local command="" word skip=0
    for word in ${words[2,CURRENT-1]}; do
        if (( skip )); then skip=0; continue; fi
        case "$word" in
            @VALUED@) skip=1 ;;
            -*) ;;
            *)
                if [[ -z "$command" ]]; then command="$word"
                elif [[ "$command" == config ]]; then command="config $word"
                fi ;;
        esac
    done
    local -a options offered
    case "$command" in
@COMMANDS@
    esac
}
compdef _plainmind plainmind
"""


def bash_script(commands: Sequence[Completed]) -> str:
    """Write the script for bash."""
    values = "\n".join(f"        {'|'.join(names)}) {reply} ;;" for names, reply in _bash_values(commands))
    cases = "\n".join(_bash_case(command) for command in commands)
    return _filled(_BASH, VALUED=_valued(commands), VALUES=values, COMMANDS=cases)


def _bash_values(commands: Sequence[Completed]) -> list[tuple[tuple[str, ...], str]]:
    """What bash offers after an option that takes a value."""
    found: dict[tuple[str, ...], str] = {}
    for option in _all_options(commands):
        if option.choices:
            found[option.names] = f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word")); return'
        elif kind_of(option.value) == "folders":
            found[option.names] = 'COMPREPLY=($(compgen -d -- "$word")); return'
        elif option.value:
            found[option.names] = "return"
    return list(found.items())


def _bash_case(command: Completed) -> str:
    options = " ".join(name for option in command.options for name in option.names)
    words = " ".join(command.words)
    label = f'"{" ".join(command.path)}"' if command.path else '""'
    return f'        {label}) options="{options}"; words="{words}"; kind="{kind_of(command.takes)}" ;;'


def zsh_script(commands: Sequence[Completed]) -> str:
    """Write the script for zsh."""
    cases = "\n".join(_zsh_case(command, commands) for command in commands)
    return _filled(_ZSH, VALUED=_valued(commands), COMMANDS=cases)


def _zsh_case(command: Completed, commands: Sequence[Completed]) -> str:
    summaries = {known.path: known.help for known in commands}
    options = " ".join(_zsh_option(option, name) for option in command.options for name in option.names)
    first = {"memory": "_plainmind_paths", "folders": "_files -/", "files": "_files"}.get(
        kind_of(command.takes)
    )
    if first is None and command.words:
        offered = " ".join(
            _quoted(_zsh_word(word, summaries.get((*command.path, word), ""))) for word in command.words
        )
        first = f"offered=({offered}); _describe -t commands command offered"
    label = f'"{" ".join(command.path)}"' if command.path else '""'
    rest = f'        if [[ "$PREFIX" != -* ]]; then {first}; fi\n' if first else ""
    return f"        {label})\n        options=({options})\n{rest}        _arguments -S $options '*: :' ;;"


def _zsh_word(word: str, text: str) -> str:
    return f"{word}:{text}" if text else word


def _zsh_option(option: Option, name: str) -> str:
    text = _plain(option.help).replace("[", "(").replace("]", ")").replace(":", " ")
    value = ""
    if option.value:
        offered = {"folders": "_files -/", "files": "_files"}.get(kind_of(option.value), " ")
        offered = f"({' '.join(option.choices)})" if option.choices else offered
        value = f":{option.value.lower()}:{offered}"
    return _quoted(f"{name}[{text}]{value}")


def fish_script(commands: Sequence[Completed]) -> str:
    """Write the script for fish."""
    names = " ".join(command.path[0] for command in commands if len(command.path) == 1)
    lines = [
        "# Completion of plainmind for fish",
        "complete -c plainmind -f",
    ]
    for command in commands:
        lines += _fish_lines(command, names)
    return "\n".join(lines) + "\n"


def _fish_lines(command: Completed, names: str) -> Iterable[str]:
    if not command.path:
        when = f"not __fish_seen_subcommand_from {names}"
    else:
        when = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in command.path)
    if len(command.path) == 1:
        parent = f"not __fish_seen_subcommand_from {names}"
        yield f"complete -c plainmind -n '{parent}' -a {command.path[0]} -d {_fish_quoted(command.help)}"
    elif command.path:
        parent = f"__fish_seen_subcommand_from {command.path[0]}"
        yield f"complete -c plainmind -n '{parent}' -a {command.path[-1]} -d {_fish_quoted(command.help)}"
    if kind_of(command.takes) == "memory":
        yield f"complete -c plainmind -n '{when}' -a '(plainmind list --quiet 2>/dev/null)'"
    elif kind_of(command.takes):
        yield f"complete -c plainmind -n '{when}' -F"
    elif command.takes and command.words:
        yield f"complete -c plainmind -n '{when}' -a '{' '.join(command.words)}'"
    for option in command.options:
        yield _fish_option(option, when)


def _fish_option(option: Option, when: str) -> str:
    flags = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    if not option.value:
        takes = ""
    elif option.choices:
        takes = f" -x -a '{' '.join(option.choices)}'"
    else:
        takes = " -r -F" if kind_of(option.value) else " -x"
    text = f" -d {_fish_quoted(option.help)}" if option.help else ""
    return f"complete -c plainmind -n '{when}' {flags}{takes}{text}"


SCRIPTS: Mapping[str, Callable[[Sequence[Completed]], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}


def _all_options(commands: Sequence[Completed]) -> Iterable[Option]:
    return (option for command in commands for option in command.options)


def _valued(commands: Sequence[Completed]) -> str:
    """Every option that takes a value, as a pattern: what follows one is no command."""
    return "|".join(
        dict.fromkeys(name for option in _all_options(commands) if option.value for name in option.names)
    )


def _filled(template: str, **parts: str) -> str:
    for name, text in parts.items():
        template = template.replace(f"@{name}@", text)
    return template


def _plain(text: str) -> str:
    return " ".join(text.replace("%%", "%").split())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + _plain(text).replace("\\", "\\\\").replace("'", "\\'") + "'"
