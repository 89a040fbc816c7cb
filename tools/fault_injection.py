#!/usr/bin/env python3
"""Injects faults at random moments into small runs of `onebit launch`, and checks their recovery.

    tools/fault_injection.py --program build/onebit --faults 60 --output faults.md

Every run has two hosts (network namespaces, so the machine must meet the requirements of
tools/network_lab.py) and its own small disk. Faults follow one another within a run, at random
steps of the warm-up and the compressed phase. The run must succeed, with every loss equal, bit for
bit, to the loss of a run without faults, and leave no process, lock or temporary file. For each kind
of fault the table lists the seconds until the attempt had ended on all hosts, those of the shutdown
alone, the steps that were repeated, and the causes that the launcher reported. Exits with 1 if any
condition is violated, and with 77 if namespaces are not allowed.
"""
import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/launch"))
import launched_hosts  # noqa: E402
import network_links  # noqa: E402
from launched_hosts import Hosts, network_lab  # noqa: E402
from launched_run import LaunchedRun, prepare  # noqa: E402

STEPS, CHECKPOINT_EVERY, FREEZE = 400, 20, 150
HANG_SECONDS = 8
FAILED = re.compile(r"attempt (\d+) failed(?: at step (\d+))?: (.*) \(ended everywhere in "
                    r"([\d.]+) s\)")
RESUMED = re.compile(r"resumed from global_step(\d+) at step")


@dataclasses.dataclass
class Row:
    fault: str
    phase: str
    step: int
    noticed: float = float("nan")  # seconds until the attempt had ended, including its shutdown
    ended: float = float("nan")    # seconds of the shutdown alone
    repeated: int = 0
    cause: str = ""
    wrong: str = ""


class Injector:
    """Has one method per fault, which returns a function that undoes the fault, or None."""

    def __init__(self, hosts, run, chance):
        self.hosts, self.run, self.chance = hosts, run, chance

    def send(self, number):
        os.kill(self.run.rank_pid(self.chance.randrange(2)), number)

    def kill_rank(self):
        self.send(signal.SIGKILL)

    def crash_rank(self):
        self.send(signal.SIGSEGV)

    def stop_rank(self):
        self.send(signal.SIGSTOP)

    def kill_mpirun(self):
        os.kill(self.run.starter_pid(), signal.SIGKILL)

    def kill_daemon(self):
        inside = network_lab.processes_in(self.hosts.namespace(self.chance.randrange(2)))
        daemons = [pid for pid in inside
                   if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "orted"]
        os.kill(daemons[0], signal.SIGKILL)

    def kill_guard(self):
        inside = network_lab.processes_in(self.hosts.namespace(self.chance.randrange(2)))
        guards = [pid for pid in inside
                  if b"host\0rank" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(guards[0], signal.SIGKILL)

    def kill_two(self):
        for rank in range(2):
            os.kill(self.run.rank_pid(rank), signal.SIGKILL)

    def pull_cable(self):
        rank = self.chance.randrange(2)
        self.hosts.pull_cable(rank)
        return lambda: self.hosts.plug_in(rank)

    def slow_link(self):
        """Limits a host to 50 kb/s: steps take seconds, or hang."""
        own = self.hosts.namespace(self.chance.randrange(2))
        words = ["tc", "-n", own, "qdisc"]
        network_lab.call(*words, "add", "dev", network_lab.PORT, "root", "tbf", "rate", "50kbit",
                         "burst", "4kb", "limit", "64kb")
        return lambda: network_lab.call(*words, "delete", "dev", network_lab.PORT, "root")

    def lose_packets(self):
        """Drops 30 % of the packets that a host sends."""
        own = self.hosts.namespace(self.chance.randrange(2))
        network_links.lose(own, network_lab.PORT, 0.3)
        return lambda: network_lab.call("tc", "-n", own, "qdisc", "delete", "dev",
                                        network_lab.PORT, "root")

    def fill_disk(self):
        filler = self.run.folder.parent / "filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        return filler.unlink

    def kill_rank_and_pull_cable(self):
        self.kill_rank()
        return self.pull_cable()

    def cut_power(self):
        rank = self.chance.randrange(2)
        self.hosts.cut_power(rank)
        return lambda: self.hosts.plug_in(rank)


FAULTS = ["kill_rank", "crash_rank", "stop_rank", "kill_mpirun", "kill_daemon", "kill_guard",
          "kill_two", "pull_cable", "cut_power", "slow_link", "lose_packets",
          "fill_disk", "kill_rank_and_pull_cable"]
MAY_GO_ON = {"slow_link", "lose_packets"}  # faults that a run may survive
DISK = "32m"


def losses_of(run):
    return [step["loss"] for step in run.steps()]


def phase_of(step):
    return "warm-up" if step <= FREEZE else "compressed"


def wait_until(run, condition, seconds):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until or run.process.poll() is not None:
            return False
        time.sleep(0.02)
    return True


def inject(hosts, run, chance, fault, step):
    """Injects one fault and waits until the next attempt resumes."""
    run.reach(step)
    row = Row(fault, phase_of(run.step()), run.step())
    failures = len(FAILED.findall(run.text()))
    resumes = len(RESUMED.findall(run.text()))
    begin = time.monotonic()
    undo = getattr(Injector(hosts, run, chance), fault)()
    patience = 1.5 * HANG_SECONDS if fault in MAY_GO_ON else 60
    if not wait_until(run, lambda: len(FAILED.findall(run.text())) > failures, patience):
        if fault not in MAY_GO_ON:
            row.wrong = "was not noticed"
        else:
            undo()
            row.cause = "none: the run went on"
        return row
    row.noticed = time.monotonic() - begin
    reached = run.step()
    _, _, row.cause, ended = FAILED.findall(run.text())[-1]
    row.ended = float(ended)
    if undo:
        # On a full disk the launcher waits for free space. The measurement excludes this wait.
        time.sleep(0 if fault == "fill_disk" else chance.uniform(0, 3))
        undo()
    again = "starting from the beginning"
    if not wait_until(run, lambda: len(RESUMED.findall(run.text())) > resumes
                      or again in run.text().rsplit("attempt ", 1)[-1], 120):
        row.wrong = "was not started again"
        return row
    resumed = RESUMED.findall(run.text())
    row.repeated = reached - (int(resumed[-1]) if len(resumed) > resumes else 0)
    if row.repeated > 2 * CHECKPOINT_EVERY:
        row.wrong = "lost more than a checkpoint's interval"
    return row


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    network_lab.call("mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder)
    try:
        yield
    finally:
        network_lab.call("umount", "--lazy", folder)


def run_with_faults(program, folder, name, faults, chance):
    """Injects as many of the faults as fit before the run's end."""
    rows = []
    with Hosts(2) as hosts, small_disk(folder / name):
        run = LaunchedRun(program, folder, f"{name}/run",
                          [*hosts.options, "--hosts", ",".join(hosts.names), "--restart-pause",
                           "200ms", "--hang-timeout", f"{HANG_SECONDS}s", "--host-timeout", "5s",
                           "--max-restarts", "100"], before=hosts.before)
        try:
            share = (STEPS - 40) // max(1, len(faults))
            for number, fault in enumerate(faults):
                step = number * share + chance.randrange(5, max(6, share))
                step = max(step, run.step() + 1)
                if rows and step > STEPS - 10:
                    break
                rows.append(inject(hosts, run, chance, fault, step))
                print(rows[-1], flush=True)
                if rows[-1].wrong:
                    return rows, [], run.text()
            status = run.wait()
            wrong = "" if status == 0 else f"the run ended with {status}"
            left = run.left_over()
            if left:
                wrong = f"left over: {left}"
        finally:
            run.close()
        if wrong:
            rows[-1].wrong = wrong
        return rows, losses_of(run), run.text()


def without_details(cause):
    cause = re.sub(r"/\S*/(\w+)\.\S*:", r"\1:", cause)
    cause = re.sub(r"10\.77\.0\.\d+", "HOST", re.sub(r"on node \S+", "on node HOST", cause))
    return re.sub(r"\d+", "N", cause)


def table_of(rows):
    kinds = collections.defaultdict(list)
    for row in rows:
        kinds[row.fault].append(row)
    lines = ["| fault | number | over after, s | of that the ending, s | steps repeated, at most | "
             "cause that was named |", "|---|---|---|---|---|---|"]
    for fault, own in sorted(kinds.items()):
        over = sorted(row.noticed for row in own if row.noticed == row.noticed) or [float("nan")]
        ended = max((row.ended for row in own if row.ended == row.ended), default=float("nan"))
        causes = collections.Counter(without_details(row.cause) for row in own)
        lines.append(f"| {fault.replace('_', ' ')} | {len(own)} | {over[len(over) // 2]:.1f} "
                     f"(at most {over[-1]:.1f}) | at most {ended:.1f} | "
                     f"{max(row.repeated for row in own)} | {'; '.join(causes)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--per-run", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=FAULTS, choices=FAULTS)
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    network_lab.end_on_signals()
    chance = random.Random(args.seed)
    faults = [args.only[number % len(args.only)] for number in range(args.faults)]
    chance.shuffle(faults)
    program = args.program.resolve()
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        prepare(program, folder, steps=STEPS, checkpoint_every=CHECKPOINT_EVERY)
        recipe = folder / "recipe.json"
        recipe.write_text(recipe.read_text().replace('"freeze_step": 60',
                                                     f'"freeze_step": {FREEZE}'))
        try:
            _, losses, text = run_with_faults(program, folder, "unbroken", [], chance)
        except launched_hosts.network_lab.CannotRun as error:
            print(f"fault_injection: {error}", file=sys.stderr)
            return network_lab.CANNOT
        if len(losses) != STEPS:
            sys.exit(f"the run without faults failed:\n{text}")
        while len(rows) < len(faults):
            own, found, text = run_with_faults(program, folder, f"run-{len(rows)}",
                                               faults[len(rows):len(rows) + args.per_run], chance)
            if not own[-1].wrong and found != losses:
                own[-1].wrong = "losses differ from those of the run without faults"
            if own[-1].wrong:
                failed = True
                print(f"{own[-1].wrong}:\n{text}", file=sys.stderr)
            rows += own
    table = table_of(rows)
    print(table)
    if args.output:
        args.output.write_text(table, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
