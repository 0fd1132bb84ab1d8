"""Where a write-ahead log is safe."""

from __future__ import annotations

import pytest

from plainmind.index.drivers.sqlite.files import allows_write_ahead, file_system_of

TABLE = """\
22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /home rw - btrfs /dev/sdb1 rw
31 30 0:26 / /home/ann/nas rw - nfs4 server:/export rw
32 22 0:27 / /mnt/my\\040disk rw - fuse.sshfs host:/ rw
33 22 0:28 / /over rw - ext4 /dev/sdc1 rw
34 22 0:29 / /over rw - cifs //server/share rw
broken line
"""


@pytest.fixture
def mounts(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    return str(table)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/", "ext4"),
        ("/home/ann", "btrfs"),
        ("/homeward", "ext4"),
        ("/home/ann/nas", "nfs4"),
        ("/home/ann/nas/deep/er", "nfs4"),
        ("/mnt/my disk/x", "fuse.sshfs"),
        ("/over/x", "cifs"),
    ],
)
def test_a_folder_is_on_the_innermost_mount(mounts, folder, kind):
    assert file_system_of(folder, mounts=mounts) == kind


def test_without_a_mount_table_nothing_is_known(tmp_path):
    assert file_system_of("/", mounts=str(tmp_path / "none")) == ""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse", "fuse.sshfs"])
def test_shared_file_systems_get_no_write_ahead_log(kind):
    assert not allows_write_ahead(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "apfs", ""])
def test_local_file_systems_get_one(kind):
    assert allows_write_ahead(kind)
