#!/bin/sh
# Install what makes XFS and btrfs in images, for `make power`. Where it cannot be had those two are left out, and it says so.
set -eu

command -v mkfs.xfs >/dev/null && command -v mkfs.btrfs >/dev/null && exit 0
command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || exit 0
echo "installing xfsprogs and btrfs-progs …" >&2
export DEBIAN_FRONTEND=noninteractive
install_them() { apt-get install --yes --quiet --no-install-recommends xfsprogs btrfs-progs >/dev/null; }
install_them 2>/dev/null || { apt-get update --quiet >/dev/null && install_them; } || true
