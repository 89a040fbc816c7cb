"""Waits until earlier work no longer takes processor time from this virtual machine."""

import os
import subprocess
import sys
import time

# The share of all processors' time that even a quiet host takes occasionally.
QUIET = 0.01
CALM = 30  # seconds in which the host must not exceed this
LONGEST = 180  # seconds to wait

SPIN = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass"


def processor_times():
    """Returns (time stolen by the host, all time) since boot, in ticks."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    return ticks[7], sum(ticks[:8])


def stolen_share():
    """Returns the share of stolen time in one second in which all processors are busy: time is not
    stolen from idle processors."""
    before = processor_times()
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN])
                for _ in os.sched_getaffinity(0)]
    for one in spinning:
        one.wait()
    stolen, every = (after - first for after, first in zip(processor_times(), before))
    return stolen / max(1, every)


def wait_until_quiet():
    """Waits until the host takes no processor time. A point ends with a checkpoint of gigabytes,
    which the host writes to its disk while the next point runs, immediately or half a minute later,
    and thereby takes time from this machine's processors."""
    os.sync()
    end = time.monotonic() + LONGEST
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < CALM:
        share = stolen_share()
        if share > QUIET:
            quiet_since = time.monotonic()
        if time.monotonic() > end:
            print(f"the host takes {100 * share:.0f} % of the processors, and goes on doing so",
                  flush=True)
            return
        time.sleep(4)
