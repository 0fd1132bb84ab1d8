#!/usr/bin/env bash
# Index the example workspace in a temporary folder and use it: what `make demo` shows.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"

scratch="$(mktemp -d "${TMPDIR:-/tmp}/plainmind-demo.XXXXXX")"
trap 'rm -rf "$scratch"' EXIT
cp -r examples/workspace examples/talk.json "$scratch"
cd "$scratch/workspace"

# Nothing of the person who runs this may change what is shown, and nothing may be written to their home.
for name in $(compgen -e); do
    case "$name" in PLAINMIND_*) unset "$name" ;; esac
done
export PLAINMIND_HOME="$scratch/home"
export PLAINMIND_WORKSPACE="$scratch/workspace"

note() { printf '\n# %s\n' "$1"; }

run() {
    local shown='$' word
    for word in "$@"; do
        case "$word" in
            *[!A-Za-z0-9_./:=-]*) shown+=" \"$word\"" ;;
            *) shown+=" $word" ;;
        esac
    done
    printf '%s\n' "$shown"
    "$@"
}

note "Read the files once"
run plainmind sync

note "By word: an error string stands in one note"
run plainmind search ERR_LEDGER_SKEW -n 1

note "By meaning and by word: no note says cats, one says kittens; it is not sure, and says so"
run plainmind search "who feeds the cats while we travel?" -n 1

note "In Chinese, in the same folder"
run plainmind search "外壳为什么进水？" -n 1

note "About a day"
run plainmind search "what was agreed on 2026-10-20?" -n 1

note "Open the file that the first answer cites"
read -r line path < <(
    plainmind search ERR_LEDGER_SKEW -n 1 --json |
        python -c 'import json, sys; best = json.load(sys.stdin)["results"][0]; print(best["startLine"], best["path"])'
)
run plainmind get "$path" --from "$line" --lines 4

note "Write something down, and find it at once"
run plainmind remember "The spare key of the pump house hangs behind the barometer."
run plainmind search "where is the key to the pump house?" -n 1

note "What was said counts too: a conversation, from a chat or from another program"
run plainmind import messages ../talk.json
run plainmind sessions search "who laminates the chart?" -n 1

note "Where everything is"
run plainmind status
