"""`make costs` counts the CPU seconds of a test, and of the processes that it started."""

from __future__ import annotations

import re

pytest_plugins = ["pytester"]

BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"


def test_a_busy_process_counts_to_its_test_and_waiting_costs_nothing(pytester):
    pytester.makepyfile(
        f"""
        import subprocess, sys, time
        def test_busy(): subprocess.run([sys.executable, "-IS", "-c", {BUSY!r}], check=True)
        def test_waits(): time.sleep(0.3)
        """
    )

    done = pytester.runpytest_inprocess("-p", "cpu_cost", "-p", "no:cacheprovider")

    done.assert_outcomes(passed=2)
    costs = {
        name: float(seconds) for seconds, name in re.findall(r"^ +([\d.]+)  (\S+)$", str(done.stdout), re.M)
    }
    file = "test_a_busy_process_counts_to_its_test_and_waiting_costs_nothing.py"
    assert costs[f"{file}::test_busy"] >= 0.3
    assert costs[f"{file}::test_waits"] <= 0.2
    assert costs[file] >= 0.3
