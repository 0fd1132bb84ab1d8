"""Stands between us and a program, in a process of its own: nothing that the program starts outlives either of us.

It ends the program when its time is over, when we close the pipe that is its input, and when we are gone, however that
came about. It adopts what the program leaves behind, and ends that too. It imports nothing of ours.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_STARTED = 127
_LONGEST_SLEEP_S = 0.25
_LONGEST_CLEARING_S = 1.0
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
_IS_LINUX = sys.platform == "linux"
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    """Run `<our process id> <seconds> <seconds to end in> <program> <arguments…>`."""
    parent, seconds, grace, *command = sys.argv[1:]
    raise SystemExit(Keeper(int(parent), float(seconds), float(grace)).keep(command))


class Keeper:
    """Runs one program, and ends with it."""

    def __init__(self, parent: int, seconds: float, grace: float) -> None:
        self._parent = parent
        self._deadline = time.monotonic() + seconds
        self._grace = grace
        self._woken, waking = os.pipe()
        for end in (self._woken, waking):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waking)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._told_to_stop = False
        for number in _STOPPING:
            signal.signal(number, self._stop)

    def keep(self, command: Sequence[str]) -> int:
        """Run the program; its exit status as a shell tells it."""
        os.umask(0o077)
        _ask_the_system(_ADOPT_ORPHANS, 1)
        child = _start(command)
        while not _has_ended(child) and not self._must_stop():
            self._sleep(self._deadline - time.monotonic())
        if not _has_ended(child):
            self._end(child)
        # Its process id is ours until it is waited for: nobody else's group can have that number.
        _signal_group(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        _clear_up()
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def _end(self, child: int) -> None:
        _signal_group(child, signal.SIGTERM)
        until = time.monotonic() + self._grace
        while not _has_ended(child) and time.monotonic() < until:
            self._sleep(until - time.monotonic())
        _signal_group(child, signal.SIGKILL)

    def _must_stop(self) -> bool:
        if self._told_to_stop or os.getppid() != self._parent or time.monotonic() >= self._deadline:
            return True
        ready, _, _ = select.select([0], [], [], 0)
        return bool(ready)  # nothing is ever written to it: it was closed

    def _sleep(self, seconds: float) -> None:
        """Wait until a process has ended or the input was closed; both are looked at by the caller."""
        watched = [self._woken] if self._told_to_stop or self._must_stop() else [self._woken, 0]
        ready, _, _ = select.select(watched, [], [], max(0.0, min(seconds, _LONGEST_SLEEP_S)))
        if self._woken in ready:
            with suppress(BlockingIOError):
                os.read(self._woken, 4096)

    def _stop(self, *_: object) -> None:
        self._told_to_stop = True


def _start(command: Sequence[str]) -> int:
    keeper = os.getpid()
    # Held back until the child is no copy of ours any more, in which a signal would only be noted.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child
    try:
        _become(command, keeper)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def _become(command: Sequence[str], keeper: int) -> None:
    os.setsid()
    _ask_the_system(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != keeper:
        return  # it was gone before it could be asked
    signal.set_wakeup_fd(-1)
    for number in (*_STOPPING, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.execv(command[0], list(command))  # noqa: S606 (no shell is wanted)


def _has_ended(child: int) -> bool:
    """Whether it has ended, without letting go of its process id."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(child: int, number: int) -> None:
    try:
        os.killpg(child, number)
    except (ProcessLookupError, PermissionError):  # it has no group of its own yet, or nobody is left in it
        with suppress(ProcessLookupError):
            os.kill(child, number)


def _clear_up() -> None:
    """End what was adopted: processes that had left the group of the program."""
    until = time.monotonic() + _LONGEST_CLEARING_S
    while time.monotonic() < until:
        for orphan in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(orphan, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []


def _ask_the_system(what: int, how: int) -> None:
    """Use `prctl`, where there is one."""
    if not _IS_LINUX:
        return
    import ctypes

    ctypes.CDLL(None).prctl(what, int(how), 0, 0, 0)
