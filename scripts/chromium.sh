#!/bin/sh
# Install the browser that the tests of the page use, with fonts for Chinese, Japanese and Korean: Debian's own.
#
# Where it cannot be installed there is nothing to do: those tests are then left out, and say so; but not where CI=true.
set -eu

command -v chromium >/dev/null && [ -n "$(find /usr/share/fonts -name 'NotoSansCJK*' 2>/dev/null | head -n 1)" ] && exit 0
command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || {
    echo "note: chromium and fonts-noto-cjk are not installed, and apt-get cannot be used: the tests in a browser are left out" >&2
    exit 0
}
echo "installing chromium and fonts-noto-cjk …" >&2
export DEBIAN_FRONTEND=noninteractive
install_them() { apt-get install --yes --quiet --no-install-recommends chromium fonts-noto-cjk >/dev/null; }
install_them 2>/dev/null || { apt-get update --quiet >/dev/null && install_them; } || {
    echo "note: apt-get does not find chromium and fonts-noto-cjk: the tests in a browser are left out" >&2
}
