"""`completion`: scripts for shells, made from the parsers, so that they never know less than the program."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from plainmind.base.value import value
from plainmind.cli.console import Console
from plainmind.cli.options import describe

# What stands for a path of the memory, and what for one of the file system.
_MEMORY_PATH = "PATH"
_FOLDERS, _FILES = {"DIR"}, {"FILE"}


@value
class ShellOption:
    """An option as a shell must know it."""

    names: tuple[str, ...]
    help: str
    value: str  # "" for a switch, else what the value is called
    choices: tuple[str, ...]


@value
class ShellCommand:
    """One command, `config set` being one too."""

    path: tuple[str, ...]
    help: str
    options: tuple[ShellOption, ...]
    words: tuple[str, ...]  # commands below, or the choices of its first argument
    takes: str  # what its first argument is called


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Say what `completion` takes."""
    describe(
        parser,
        """\
Print a script that teaches your shell the commands and options.

Only prints; you decide where it goes.""",
        examples=(
            'eval "$(plainmind completion bash)"          # in ~/.bashrc',
            'eval "$(plainmind completion zsh)"           # in ~/.zshrc, after compinit',
            "plainmind completion fish > ~/.config/fish/completions/plainmind.fish",
        ),
        run=run_completion,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")


def run_completion(arguments: argparse.Namespace, console: Console) -> int:
    """Print the script."""
    from plainmind.cli.main import build_parser

    script = SCRIPTS[arguments.shell](list(commands_in(build_parser(), "", ())))
    if console.json:
        console.result({"shell": arguments.shell, "script": script})
    else:
        console.answer(script.rstrip("\n"))
    return 0


def commands_in(parser: argparse.ArgumentParser, text: str, path: tuple[str, ...]) -> Iterator[ShellCommand]:
    """Walk the parser: itself, then all commands below."""
    options: list[ShellOption] = []
    words: tuple[str, ...] = ()
    takes = ""
    below: list[tuple[str, str, argparse.ArgumentParser]] = []
    for action in parser._actions:  # noqa: SLF001 (argparse shows its arguments in no other way)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
            below = [(name, summaries.get(name, ""), inner) for name, inner in action.choices.items()]
            words = tuple(action.choices)
        elif action.option_strings:
            options.append(_option(action))
        elif not takes:
            takes, words = str(action.metavar or action.dest), tuple(map(str, action.choices or ()))
    yield ShellCommand(path, text, tuple(options), words, takes)
    for name, summary, inner in below:
        yield from commands_in(inner, summary, (*path, name))


def _option(action: argparse.Action) -> ShellOption:
    value = "" if action.nargs == 0 else str(action.metavar or action.dest)
    text = "" if action.help in {None, argparse.SUPPRESS} else str(action.help)
    return ShellOption(tuple(action.option_strings), text, value, tuple(map(str, action.choices or ())))


def kind_of(name: str) -> str:
    """What a shell offers for a value: `memory`, `folders`, `files` or nothing."""
    if name == _MEMORY_PATH:
        return "memory"
    return "folders" if name in _FOLDERS else "files" if name in _FILES else ""


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


def bash_script(commands: Sequence[ShellCommand]) -> str:
    """Write the script for bash."""
    values = "\n".join(f"        {'|'.join(names)}) {reply} ;;" for names, reply in _bash_values(commands))
    cases = "\n".join(_bash_case(command) for command in commands)
    return _fill(_BASH, VALUED=_valued(commands), VALUES=values, COMMANDS=cases)


def _bash_values(commands: Sequence[ShellCommand]) -> list[tuple[tuple[str, ...], str]]:
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


def _bash_case(command: ShellCommand) -> str:
    options = " ".join(name for option in command.options for name in option.names)
    words = " ".join(command.words)
    label = f'"{" ".join(command.path)}"' if command.path else '""'
    return f'        {label}) options="{options}"; words="{words}"; kind="{kind_of(command.takes)}" ;;'


def zsh_script(commands: Sequence[ShellCommand]) -> str:
    """Write the script for zsh."""
    cases = "\n".join(_zsh_case(command, commands) for command in commands)
    return _fill(_ZSH, VALUED=_valued(commands), COMMANDS=cases)


def _zsh_case(command: ShellCommand, commands: Sequence[ShellCommand]) -> str:
    summaries = {known.path: known.help for known in commands}
    options = " ".join(_zsh_option(option, name) for option in command.options for name in option.names)
    first = {"memory": "_plainmind_paths", "folders": "_files -/", "files": "_files"}.get(
        kind_of(command.takes)
    )
    if first is None and command.words:
        offered = " ".join(
            _quote(_zsh_word(word, summaries.get((*command.path, word), ""))) for word in command.words
        )
        first = f"offered=({offered}); _describe -t commands command offered"
    label = f'"{" ".join(command.path)}"' if command.path else '""'
    rest = f'        if [[ "$PREFIX" != -* ]]; then {first}; fi\n' if first else ""
    return f"        {label})\n        options=({options})\n{rest}        _arguments -S $options '*: :' ;;"


def _zsh_word(word: str, text: str) -> str:
    return f"{word}:{text}" if text else word


def _zsh_option(option: ShellOption, name: str) -> str:
    text = _plain(option.help).replace("[", "(").replace("]", ")").replace(":", " ")
    value = ""
    if option.value:
        offered = {"folders": "_files -/", "files": "_files"}.get(kind_of(option.value), " ")
        offered = f"({' '.join(option.choices)})" if option.choices else offered
        value = f":{option.value.lower()}:{offered}"
    return _quote(f"{name}[{text}]{value}")


def fish_script(commands: Sequence[ShellCommand]) -> str:
    """Write the script for fish."""
    names = " ".join(command.path[0] for command in commands if len(command.path) == 1)
    lines = [
        "# Completion of plainmind for fish",
        "complete -c plainmind -f",
    ]
    for command in commands:
        lines += _fish_lines(command, names)
    return "\n".join(lines) + "\n"


def _fish_lines(command: ShellCommand, names: str) -> Iterable[str]:
    if not command.path:
        when = f"not __fish_seen_subcommand_from {names}"
    else:
        when = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in command.path)
    if len(command.path) == 1:
        parent = f"not __fish_seen_subcommand_from {names}"
        yield f"complete -c plainmind -n '{parent}' -a {command.path[0]} -d {_fish_quote(command.help)}"
    elif command.path:
        parent = f"__fish_seen_subcommand_from {command.path[0]}"
        yield f"complete -c plainmind -n '{parent}' -a {command.path[-1]} -d {_fish_quote(command.help)}"
    if kind_of(command.takes) == "memory":
        yield f"complete -c plainmind -n '{when}' -a '(plainmind list --quiet 2>/dev/null)'"
    elif kind_of(command.takes):
        yield f"complete -c plainmind -n '{when}' -F"
    elif command.takes and command.words:
        yield f"complete -c plainmind -n '{when}' -a '{' '.join(command.words)}'"
    for option in command.options:
        yield _fish_option(option, when)


def _fish_option(option: ShellOption, when: str) -> str:
    flags = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    if not option.value:
        takes = ""
    elif option.choices:
        takes = f" -x -a '{' '.join(option.choices)}'"
    else:
        takes = " -r -F" if kind_of(option.value) else " -x"
    text = f" -d {_fish_quote(option.help)}" if option.help else ""
    return f"complete -c plainmind -n '{when}' {flags}{takes}{text}"


SCRIPTS: Mapping[str, Callable[[Sequence[ShellCommand]], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}


def _all_options(commands: Sequence[ShellCommand]) -> Iterable[ShellOption]:
    return (option for command in commands for option in command.options)


def _valued(commands: Sequence[ShellCommand]) -> str:
    """Every option that takes a value, as a pattern: what follows one is no command."""
    return "|".join(
        dict.fromkeys(name for option in _all_options(commands) if option.value for name in option.names)
    )


def _fill(template: str, **parts: str) -> str:
    for name, text in parts.items():
        template = template.replace(f"@{name}@", text)
    return template


def _plain(text: str) -> str:
    return " ".join(text.replace("%%", "%").split())


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quote(text: str) -> str:
    return "'" + _plain(text).replace("\\", "\\\\").replace("'", "\\'") + "'"
