#!/bin/sh
# Make .venv with what uv.lock names and this project in it: everything `make install` does.
#
# Needs only a Python 3.11 or newer; runs in no time when nothing changed, and then needs no network.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $1"; say "hint: $2"; exit 1; }

recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in "${PYTHON:-}" python3 python3.11 python3.12 python3.13 python3.14 python; do
        if [ -n "$candidate" ] && recent "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer was found" "install one (Debian, Ubuntu: apt-get install python3), or name it: make install PYTHON=/path/to/python3"
}

# Debian and Ubuntu ship venv and ensurepip apart from python3.
can_make_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install_venv_package() {
    package="python$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    advice="run: sudo apt-get install python3-venv   then try again"
    command -v apt-get >/dev/null || fail "$1 cannot make virtual environments (the module ensurepip is missing)" "install your system's package for Python's venv module"
    as_root true 2>/dev/null || fail "$1 cannot make virtual environments, and only root may install what is missing" "$advice"
    say "installing $package: Debian's python3 cannot make virtual environments without it"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get install -y -q --no-install-recommends "$package" >/dev/null 2>&1 || {
        as_root apt-get update -q >/dev/null && as_root apt-get install -y -q --no-install-recommends "$package" >/dev/null
    } || fail "apt-get could not install $package" "$advice"
}

# Works: it starts (its Python may have been removed), is recent, and stands where it was made
# (a copied or moved checkout has scripts that point at the old place).
works() {
    [ -x .venv/bin/python ] && recent .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1 &&
        [ "$(cat .venv/.made-at 2>/dev/null)" = "$PWD" ]
}

# The usual case first, and without starting more than one Python.
if [ -x .venv/bin/python ] && [ "$(cat .venv/.made-at 2>/dev/null)" = "$PWD" ] && .venv/bin/python scripts/install.py --is-current 2>/dev/null; then
    exit 0
fi

if ! works; then
    python="$(find_python)"
    can_make_venv "$python" || install_venv_package "$python"
    "$python" -m venv --clear .venv
    printf '%s' "$PWD" > .venv/.made-at
fi
exec .venv/bin/python scripts/install.py
