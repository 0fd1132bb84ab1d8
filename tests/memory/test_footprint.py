import subprocess
import sys

from plainmind.memory.status import footprint

# In a process of its own: in that of the tests other threads open and close files too.
COUNTING = """
import os, threading
from plainmind.memory.status import footprint

before = footprint()
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
descriptor = os.open("/", os.O_RDONLY)
during = footprint()
os.close(descriptor)
stop.set()
thread.join()

assert during["threads"] == before["threads"] + 1
assert during["openFiles"] == before["openFiles"] + 1
assert footprint()["openFiles"] == before["openFiles"]
"""


def test_open_files_and_threads_are_counted():
    subprocess.run([sys.executable, "-c", COUNTING], check=True)


def test_memory_is_told_in_bytes():
    facts = footprint()

    assert 1_000_000 < facts["residentBytes"] < 2 * facts["peakResidentBytes"]
    assert facts["maxOpenFiles"] >= facts["openFiles"]


LEAVING_OPEN = """
import gc, os, sys
from plainmind import Memory

def look():
    memory = Memory(sys.argv[1], home=sys.argv[2])
    assert memory.search("gateway").hits

def open_files():
    gc.collect()
    return len(os.listdir("/dev/fd"))

look()
before = open_files()
for _ in range(5):
    look()
assert open_files() == before, [before, open_files()]
left = Memory(sys.argv[1], home=sys.argv[2])  # to the end of the process
left.search("gateway")
"""


def test_a_memory_that_nobody_closes_keeps_no_file_open(workspace, home):
    command = [sys.executable, "-c", LEAVING_OPEN, str(workspace), str(home)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
