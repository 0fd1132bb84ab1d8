#!/bin/sh
# Install the real QMD that the tests marked `integration` use, from whatever registry npm is set up with (about 400 MB).
#
# Where it cannot be installed there is nothing to do: those tests are then left out, and say so.
set -eu
cd "$(dirname "$0")/../tests/support/qmd"

command -v npm >/dev/null || {
    echo "note: npm is not installed: the tests with the real QMD are left out" >&2
    exit 0
}
[ "$(uname -sm)" = "Linux x86_64" ] || {
    echo "note: the tests with the real QMD run on Linux x86_64; they are left out here" >&2
    exit 0
}
stamp=node_modules/.installed-from
cmp -s package-lock.json "$stamp" && exit 0
echo "installing QMD into tests/support/qmd …" >&2
# The lock names versions and hashes, and no host. Optional packages are those for other machines and graphics cards.
npm ci --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
cp package-lock.json "$stamp"
