"""Whatever a person can do wrong ends in one error line and one hint, never in a traceback."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import termios
import time

import pytest
from tests.cli.terminal import COMMAND


def assert_clear(answer, *words):
    assert answer.status == 1
    assert "Traceback" not in answer.err
    assert [line.split(":")[0] for line in answer.err.splitlines()] == ["error", "hint"]
    for word in words:
        assert word in answer.err


@pytest.mark.parametrize(
    "argv", [["search", "q"], ["sync"], ["list"], ["remember", "x"], ["export"], ["forget", "abc"]]
)
def test_a_missing_workspace_is_explained(cli, argv):
    assert_clear(cli(*argv, "--workspace", "nowhere"), "nowhere", "plainmind init")


def test_a_workspace_that_is_a_file_is_explained(cli, tmp_path):
    (tmp_path / "file").write_text("x")

    assert_clear(cli("remember", "x", "--workspace", "file"), "file")
    assert_clear(cli("search", "x", "--workspace", "file"), "file")


@pytest.mark.parametrize(
    "argv", [["search", "q"], ["sync"], ["list"], ["remember", "x"], ["watch"], ["export"]]
)
def test_a_workspace_that_may_not_be_read_is_not_taken_for_an_empty_one(as_plain_user, workspace, argv):
    workspace.chmod(0)
    try:
        assert_clear(as_plain_user(*argv), str(workspace), "cannot be read: Permission denied")
    finally:
        workspace.chmod(0o755)


@pytest.mark.parametrize(
    "path",
    ["../secret.md", "memory/../../secret.md", "/etc/passwd", "memory/link.md", "memory/twin.md", "notes.txt", "a\0.md",
     "memory", "", "memory/nothing.md", "memory/\udcff.md", "memory/" + "x" * 5000 + ".md"],
)  # fmt: skip
def test_a_path_outside_the_memory_is_refused(cli, workspace, tmp_path, path):
    (tmp_path / "secret.md").write_text("secret")
    (workspace / "notes.txt").write_text("secret")
    (workspace / "memory" / "link.md").symlink_to(tmp_path / "secret.md")
    os.link(tmp_path / "secret.md", workspace / "memory" / "twin.md")

    answer = cli("get", path)

    assert_clear(answer)
    assert "secret" not in answer.out
    assert_clear(cli("edit", path, "--old", "secret", "--new", "x"))
    assert (tmp_path / "secret.md").read_text() == "secret"


def test_every_error_is_json_when_json_is_asked_for(cli, workspace):
    answer = cli("get", "../secret.md", "--json")

    assert answer.status == 1
    assert answer.err == ""
    assert list(answer.json["error"]) == ["type", "message", "hint"]
    assert answer.json["error"]["type"] == "PathNotAllowed"


def test_a_file_of_zeros_and_one_that_is_no_utf_8_are_indexed_beside_the_others(cli, workspace):
    (workspace / "memory" / "zeros.md").write_bytes(b"quokka\0\0\0 here\n")
    (workspace / "memory" / "latin.md").write_bytes(b"caf\xe9 wombat\n")

    assert "memory/zeros.md" in cli("search", "quokka").out
    assert "memory/latin.md" in cli("search", "wombat").out
    assert cli("search", "quokka", "--json").json["results"]


def test_a_file_name_that_is_no_utf_8_does_not_stop_anything(process, workspace):
    (workspace / "memory" / os.fsdecode(b"caf\xe9.md")).write_text("a quokka\n")

    assert process("list").status == 0
    assert process("search", "quokka", "--json").json["degraded"] == []
    assert process("status", "--json").status == 0


def test_a_file_that_is_too_large_is_left_out_and_named(cli, workspace):
    with open(workspace / "memory" / "huge.md", "wb") as file:
        file.truncate(1_000_000_000)

    assert cli("search", "gateway").status == 0
    assert "memory/huge.md: 1" in cli("status").out
    assert_clear(cli("get", "memory/huge.md"), "huge.md")


def test_a_question_of_any_length_is_answered(cli, workspace):
    assert cli("search", "-", "--json", stdin="gateway " * 20_000).status == 0
    assert cli("search", "").status == 0
    assert cli("search", "\0\x1b[2J").status == 0


@pytest.mark.parametrize(
    "text", ["{", "[1]", "{ query: 3 }", "{ qurey: {} }", "{ query: { maxResults: {} } }"]
)
def test_a_broken_configuration_names_its_file(cli, workspace, home, text):
    home.mkdir()
    (home / "plainmind.json5").write_text(text)

    assert_clear(cli("search", "q"), "plainmind.json5")


@pytest.mark.parametrize("first_page", [0, 1, 3, 20])
@pytest.mark.parametrize("command", ["search", "sync"])
def test_a_damaged_index_is_made_anew_and_says_so(cli, workspace, home, first_page, command):
    cli("sync")
    (database,) = home.glob("index/**/*.sqlite")
    pages = database.stat().st_size // 4096
    with open(database, "r+b") as file:
        file.seek(first_page * 4096)
        file.write(b"\xa5" * 4096 * (pages - first_page))

    answer = cli(command, *(["gateway"] if command == "search" else []))
    again = cli("search", "gateway")

    assert answer.status == 0
    # A sync that need not read the damaged page cannot know of it; the search that does mends it.
    assert "the index was damaged" in answer.err + again.err
    assert "memory/network.md" in again.out


def test_a_lock_that_somebody_holds_is_named_and_searching_goes_on(cli, workspace, home, monkeypatch):
    monkeypatch.setattr("plainmind.index.drivers.sqlite.files._WRITER_TIMEOUT_S", 0.2)
    cli("sync")
    (workspace / "memory" / "new.md").write_text("A second gateway.\n")
    (lock,) = home.glob("index/**/writer.lock")
    with open(lock, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answer = cli("search", "gateway", "--strict")

    assert (answer.status, "memory/network.md" in answer.out) == (3, True)
    assert "the latest changes may be missing: could not lock" in answer.err


def test_a_home_that_is_a_file_is_explained(cli, workspace, tmp_path):
    (tmp_path / "file").write_text("x")

    assert_clear(cli("search", "q", "--home", str(tmp_path / "file")), str(tmp_path / "file"))


def test_a_working_folder_that_is_gone_is_explained(tmp_path, process):
    gone = tmp_path / "gone"
    gone.mkdir()

    shell = f'cd "{gone}" && rmdir "{gone}" && exec "{COMMAND}" list'
    ended = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr


@pytest.fixture
def read_only(workspace):
    """Root ignores permissions, so the workspace is mounted read-only in a name space of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    try:
        subprocess.run(["unshare", "--mount", "--map-root-user", "true"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        pytest.skip("this system allows no mounts")

    def run(*argv):
        mount = (
            f'mount --bind "{workspace}" "{workspace}" && mount -o remount,bind,ro "{workspace}" && exec "$@"'
        )
        return subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", mount, "sh", COMMAND, *argv],
            capture_output=True,
            text=True,
            check=False,
        )

    if "mount" in run("--version").stderr:
        pytest.skip("this system allows no bind mounts")
    return run


def test_a_read_only_workspace_can_be_searched_but_not_written(read_only):
    found = read_only("search", "gateway")
    refused = read_only("remember", "x")

    assert (found.returncode, "memory/network.md" in found.stdout) == (0, True)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: ")
    assert "Read-only file system" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_output_that_cannot_be_written_is_an_error(workspace):
    with open("/dev/full", "w") as full:
        ended = subprocess.run([COMMAND, "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stderr == "error: the output: No space left on device\nhint: free some space\n"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_note_that_is_kept_but_cannot_be_reported_is_said_to_be_kept(workspace, form):
    with open("/dev/full", "w") as full:
        command = [COMMAND, "remember", "the printer is on VLAN 40", *form]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == 1
    assert "error: the note is kept in memory/" in ended.stderr
    assert "hint: do not write it again" in ended.stderr
    assert "VLAN 40" in "".join(file.read_text() for file in (workspace / "memory").glob("20*.md"))


@pytest.mark.parametrize("argv", [["list", "--json"], ["get", "memory/none.md", "--json"]])
def test_json_that_cannot_be_written_is_an_error_without_a_buffer_too(workspace, argv):
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [COMMAND, *argv], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=env
        )

    assert (ended.returncode, ended.stderr) == (
        1,
        "error: the output: No space left on device\nhint: free some space\n",
    )


def test_a_reader_that_goes_away_is_no_error(workspace):
    (workspace / "memory" / "long.md").write_text("x" * 100 + "\n" + "line\n" * 100_000)

    shell = f'"{COMMAND}" export | head -c 10; exit "${{PIPESTATUS[0]}}"'
    ended = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1"])
def test_answers_are_utf_8_whatever_the_locale(process, workspace, locale):
    (workspace / "memory" / "zh.md").write_text("电池可以用三年 🙂\n")

    env = {"LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    answer = process("search", "电池", env=env)

    assert answer.status == 0
    assert "电池可以用三年 🙂" in answer.out


def test_ctrl_c_ends_a_command_with_130_and_without_a_traceback(workspace):
    # What a shell starts in the background ignores Ctrl-C, and so would whatever that starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    waiting = subprocess.Popen(
        [COMMAND, "remember", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    signal.signal(signal.SIGINT, before)
    os.write(waiting.stdin.fileno(), b"half a note")
    while fcntl.ioctl(waiting.stdin.fileno(), termios.FIONREAD, b"\0" * 4) != b"\0" * 4:
        time.sleep(0.01)  # until it has begun to read
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)

    assert (waiting.returncode, out, err) == (130, b"", b"")


def test_a_mistake_of_ours_is_not_hidden(cli, workspace, monkeypatch):
    def broken(*_arguments, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr("plainmind.memory.memory.Memory.list", broken)

    with pytest.raises(ZeroDivisionError):
        cli("list")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_has_closed_is_no_file_to_print_into(workspace, tmp_path, closed):
    words = f"'{COMMAND}' remember 'the gateway moved' --workspace '{workspace}' {closed}"
    ended = subprocess.run(["sh", "-c", words], capture_output=True, check=False, cwd=tmp_path)

    assert ended.returncode == 0, ended.stderr
    (log,) = [path for path in (workspace / "memory").glob("*.md") if "moved" in path.read_text()]
    assert log.read_text().count("moved") == 1
