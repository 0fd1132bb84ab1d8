#!/bin/sh
# Install the second MCP client that the tests use, from whatever registry npm is set up with.
#
# Without npm there is nothing to do: the tests that need it are then left out, and say so.
set -eu
cd "$(dirname "$0")/../tests/support/node"

command -v npm >/dev/null || {
    echo "note: npm is not installed: the tests with the second MCP client are left out" >&2
    exit 0
}
stamp=node_modules/.installed-from
cmp -s package-lock.json "$stamp" && exit 0
echo "installing the second MCP client into tests/support/node …" >&2
# The lock names versions and hashes, and no host: npm asks the registry of this machine.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
cp package-lock.json "$stamp"
