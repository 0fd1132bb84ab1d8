#!/bin/sh
# Install the programs in which agents live, from whatever registry npm is set up with (about 1.5 GB), for `make hosts`.
#
# Prints the folder that they are in. What cannot be installed is left out, and its tests say so.
set -eu
folder="${PLAINMIND_HOSTS:-${XDG_CACHE_HOME:-$HOME/.cache}/plainmind-hosts}"
mkdir -p "$folder"
command -v npm >/dev/null || {
    echo "note: npm is not installed: the tests with real hosts are left out" >&2
    echo "$folder"
    exit 0
}
install_into() {
    [ -d "$folder/$1/node_modules/.bin" ] && [ -z "${UPGRADE:-}" ] && return 0
    echo "installing $2 …" >&2
    mkdir -p "$folder/$1"
    (cd / && npm install --no-audit --no-fund --loglevel=error --prefix "$folder/$1" "$2" >/dev/null) ||
        echo "note: $2 could not be installed; its test is left out" >&2
}
install_into node node@26 # Claude Code wants a newer one than most systems have
PATH="$folder/node/node_modules/.bin:$PATH"
export PATH
install_into claude-code @anthropic-ai/claude-code@latest
install_into codex @openai/codex@latest
install_into gemini-cli @google/gemini-cli@latest
install_into copilot @github/copilot@latest
install_into opencode-ai opencode-ai@latest
install_into openclaw openclaw@latest
echo "$folder"
