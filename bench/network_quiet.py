"""Waits until what has run before no longer takes a virtual machine's processors."""

import os
import subprocess
import sys
import time

# Of all processors: what a quiet host takes now and then.
QUIET = 0.01
CALM = 30  # seconds in which it takes no more
LONGEST = 180  # seconds to wait

SPIN = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass"


def processor_times():
    """(stolen by the host, all) since the start, in ticks."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    return ticks[7], sum(ticks[:8])


def stolen_share():
    """While every processor has something to do, for a second: an idle one is not stolen."""
    before = processor_times()
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN])
                for _ in os.sched_getaffinity(0)]
    for one in spinning:
        one.wait()
    stolen, every = (after - first for after, first in zip(processor_times(), before))
    return stolen / max(1, every)


def wait_until_quiet():
    """A point ends with a checkpoint of gigabytes. The host still writes them to its disk when the
    next one begins, at once or half a minute later, by time that it takes from this machine's
    processors."""
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
