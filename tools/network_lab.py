#!/usr/bin/env python3
"""Runs a program on ranks that are connected by slow links, all on this machine.

    tools/network_lab.py --ranks 2 --rate 100mbit -- build/onebit pretrain --recipe ...
    tools/network_lab.py --ranks 4 --rate 1gbit --delay 2ms --loss 0.01% --pin -- PROGRAM ...

Every rank gets a network namespace with one link, `eth0`, to a switch (a bridge in its own
namespace). With --ranks-per-host 4, groups of four ranks share a namespace and memory like ranks of
one host. The link is shaped in both directions. Open MPI starts the program. Between hosts, its
ranks communicate only by TCP over these links. With --plain the ranks are started without Open MPI,
with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set.

Needs root, iproute2 and Open MPI. Exits with the program's status, with 124 after --timeout, and
with 77 and a one-line reason if such a network cannot be made here. Namespaces and processes are always
removed. If a run was killed together with its guard, the next run removes its leftovers.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from network_links import CannotRun, Link, call, delay_of, loss_of, rate_of, shape

CANNOT = 77  # the status of a skipped test for ctest
TIMED_OUT = 124
PREFIX = "onebit-lab"
PORT = "eth0"
PROGRAM_PORT = 29400  # MASTER_PORT of ranks that are started without MPI
GRACE_SECONDS = 5
REMOVAL_SECONDS = 60


# --- what is left over -------------------------------------------------------------------------


def start_time(pid):
    """Returns the start of a process in clock ticks since boot, or None if there is no process."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def namespaces():
    return [line.split()[0] for line in call("ip", "netns", "list").splitlines() if line.strip()]


def processes_in(namespace):
    done = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True,
                          check=False)
    return [int(pid) for pid in done.stdout.split()]


def left_of(name):
    """Returns a lab's processes and namespaces. A maker that was killed leaves its `ip` or `tc`, which
    may still make a namespace or set up a link: their words name the lab."""
    own = [namespace for namespace in namespaces() if namespace.startswith(name + "-")]
    inside = {pid for one in own for pid in processes_in(one)}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if (pathlib.PurePath(words[0]).name in ("ip", "tc") and
                    any(word.startswith(name + "-") for word in words[1:])):
                inside.add(int(process.name))
    return inside, own


def delete(own):
    for namespace in own:
        subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)


def remove(name):
    """Removes a lab: processes, namespaces (with their links and shapers) and its folder."""
    until = time.monotonic() + REMOVAL_SECONDS
    clean_looks = 0
    # A process may have forked since it was listed, or have made a namespace: two looks in succession
    # find nothing.
    while clean_looks < 2 and time.monotonic() < until:
        processes, own = left_of(name)
        clean_looks = 0 if processes or own else clean_looks + 1
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # A process in a namespace that has lost its name could no longer be found.
        if not processes:
            delete(own)
        time.sleep(0.02)
    delete(left_of(name)[1])
    shutil.rmtree(pathlib.Path(tempfile.gettempdir()) / name, ignore_errors=True)


def remove_leftovers():
    """Removes labs whose maker has ended. Returns their names."""
    labs = {re.match(rf"{PREFIX}-(\d+)-(\d+)", name) for name in
            namespaces() + [path.name for path in
                            pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}-*")]}
    left = {lab.group() for lab in labs if lab and start_time(lab.group(1)) != lab.group(2)}
    for name in left:
        remove(name)
    return sorted(left)


def guard(name):
    """Removes a lab when its maker has ended, which closes standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    remove(name)


# --- the network and its ranks -----------------------------------------------------------------


class NetworkLab:
    """The network, as a context: `with NetworkLab(2, Link(rate_bits=1e8)) as lab: lab.run([...])`.
    Raises ValueError for an impossible topology, CannotRun if the machine cannot make it."""

    def __init__(self, ranks, link, pin=False, ranks_per_host=1):
        self.ranks = ranks
        self.ranks_per_host = ranks_per_host
        self.hosts = ranks // max(1, ranks_per_host)
        self.link = link
        self.pin = pin
        self.name = f"{PREFIX}-{os.getpid()}-{start_time(os.getpid())}"
        self.folder = pathlib.Path(tempfile.gettempdir()) / self.name
        self.guard = None
        if not 1 <= ranks <= 200:
            raise ValueError(f"{ranks} ranks: from 1 to 200 can be joined")
        if ranks_per_host < 1 or ranks % ranks_per_host:
            raise ValueError(f"{ranks} ranks are no whole number of hosts with {ranks_per_host} each")

    def __enter__(self):
        check_machine()
        remove_leftovers()
        # In its own session, the guard survives when the terminal or a kill ends this process.
        self.guard = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), "--guard",
                                       self.name], stdin=subprocess.PIPE, start_new_session=True)
        try:
            self.build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with uninterrupted():
            remove(self.name)
            if self.guard:
                self.guard.stdin.close()
                self.guard.wait()
                self.guard = None

    def namespace(self, host):
        return f"{self.name}-{host}"

    def address(self, host):
        return f"10.77.0.{host + 1}"

    def cores(self, host):
        """Returns the cores of a host's ranks: one per rank, shared if there are too few."""
        cores = sorted(os.sched_getaffinity(0))
        ranks = range(host * self.ranks_per_host, (host + 1) * self.ranks_per_host)
        return ",".join(str(core) for core in sorted({cores[rank % len(cores)] for rank in ranks}))

    @property
    def switch(self):
        return f"{self.name}-switch"

    def build(self):
        self.folder.mkdir(mode=0o700)
        call("ip", "netns", "add", self.switch)
        call("ip", "-n", self.switch, "link", "add", "switch", "type", "bridge")
        # mpirun runs in the switch's namespace.
        call("ip", "-n", self.switch, "address", "add", "10.77.0.254/24", "dev", "switch")
        for device in ("lo", "switch"):
            call("ip", "-n", self.switch, "link", "set", device, "up")
        for host in range(self.hosts):
            own, port = self.namespace(host), f"port{host}"
            call("ip", "netns", "add", own)
            call("ip", "link", "add", PORT, "netns", own, "type", "veth", "peer", "name", port,
                 "netns", self.switch)
            call("ip", "-n", self.switch, "link", "set", port, "master", "switch", "up")
            call("ip", "-n", own, "address", "add", f"{self.address(host)}/24", "dev", PORT)
            for device in ("lo", PORT):
                call("ip", "-n", own, "link", "set", device, "up")
            shape(own, PORT, self.link, far_end=False)
            shape(self.switch, port, self.link, far_end=True)
        self.write_agent()

    def inside(self, host):
        """Returns the prefix that runs a command in a host's namespace under its own host name:
        Open MPI assumes that ranks with the same host name share memory."""
        words = ["ip", "netns", "exec", self.namespace(host), "unshare", "--uts", "sh", "-c",
                 f"hostname host{host}; exec \"$@\"", "sh"]
        return words + (["taskset", "-c", self.cores(host)] if self.pin else [])

    def write_agent(self):
        """Writes the script that mpirun runs instead of ssh to start daemons: HOST WORD..."""
        cases = "".join(f"  {self.address(host)}) set -- {shlex.join(self.inside(host))} "
                        "sh -c \"$*\" ;;\n" for host in range(self.hosts))
        agent = self.folder / "agent"
        agent.write_text("#!/bin/sh\nhost=\"$1\"\nshift\ncase \"$host\" in\n" + cases +
                         "  *) echo \"agent: no host has the address $host\" >&2; exit 1 ;;\n"
                         "esac\nexec \"$@\"\n", encoding="utf-8")
        agent.chmod(0o700)

    def mpirun(self, command):
        hosts = ",".join(f"{self.address(host)}:{self.ranks_per_host}" for host in range(self.hosts))
        # Open MPI 5 has other names for its agents, temporary files and shared memory than 4.
        agents, runtime, memory = ("ssh", "prte", "sm") if open_mpi() >= 5 else ("rsh", "orte",
                                                                                "vader")
        transports = "self,tcp" if self.ranks_per_host == 1 else f"self,{memory},tcp"
        settings = {"plm": agents, f"plm_{agents}_agent": self.folder / "agent",
                    f"plm_{agents}_no_tree_spawn": 1, f"{runtime}_tmpdir_base": self.folder,
                    "pml": "ob1", "btl": transports, "btl_tcp_if_include": "10.77.0.0/24",
                    "oob_tcp_if_include": "10.77.0.0/24"}
        words = ["ip", "netns", "exec", self.switch, "mpirun", "--allow-run-as-root", "--bind-to",
                 "none", "--host", hosts, "-np", self.ranks]
        for name, value in settings.items():
            words += ["--mca", name, value]
        return [str(word) for word in words + list(command)]

    def run(self, command, timeout=None, **options):
        """Runs a command on every rank by mpirun. Returns its status, or TIMED_OUT after `timeout`
        seconds. `options` are subprocess.Popen's."""
        return wait_for([subprocess.Popen(self.mpirun(command), start_new_session=True,
                                          **{"stdin": subprocess.DEVNULL, **options})], timeout)

    def run_plain(self, command, timeout=None, env=None, **options):
        """Runs a command on every rank without MPI. Returns the first status that is not 0."""
        started = []
        for rank in range(self.ranks):
            host, local = divmod(rank, self.ranks_per_host)
            own = {**(os.environ if env is None else env), "RANK": str(rank),
                   "LOCAL_RANK": str(local), "WORLD_SIZE": str(self.ranks),
                   "MASTER_ADDR": self.address(0),
                   "MASTER_PORT": str(PROGRAM_PORT), "GLOO_SOCKET_IFNAME": PORT}
            started.append(subprocess.Popen(
                self.inside(host) + [str(word) for word in command], env=own,
                start_new_session=True, **{"stdin": subprocess.DEVNULL, **options}))
        return wait_for(started, timeout)


def wait_for(started, timeout):
    """Waits until all processes have ended, or one has failed, and then ends the others."""
    until = None if timeout is None else time.monotonic() + timeout
    try:
        while True:
            states = [process.poll() for process in started]
            bad = [state for state in states if state]
            if bad:
                return bad[0] if bad[0] > 0 else 128 - bad[0]
            if None not in states:
                return 0
            if until is not None and time.monotonic() > until:
                return TIMED_OUT
            time.sleep(0.05)
    finally:
        with uninterrupted():
            for process in started:
                if process.poll() is None:
                    process.terminate()
            for process in started:
                try:
                    process.wait(GRACE_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


@contextlib.contextmanager
def uninterrupted():
    """Ignores signals: a second Ctrl-C must not stop the cleanup after the first."""
    before = {number: signal.signal(number, signal.SIG_IGN)
              for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def open_mpi():
    """Returns the series of Open MPI's mpirun: 4, 5."""
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\(Open MPI\) (\d+)", said.stdout)
    if not found:
        raise CannotRun("mpirun is not Open MPI's")
    return int(found[1])


def check_machine():
    """Raises CannotRun if no such network can be made."""
    if os.geteuid() != 0:
        raise CannotRun("network namespaces need root")
    for program, package in (("ip", "iproute2"), ("tc", "iproute2"), ("mpirun", "openmpi-bin"),
                             ("unshare", "util-linux"), ("taskset", "util-linux"),
                             ("hostname", "hostname")):
        if not shutil.which(program):
            raise CannotRun(f"there is no {program} here: install {package}")


def end_by_signal(number, _):
    raise SystemExit(128 + number)


def end_on_signals():
    """Makes signals end the program like an exception, so that every `finally` runs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_by_signal)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--ranks-per-host", type=int, default=1,
                        help="ranks that share a host's link and memory")
    parser.add_argument("--rate", type=rate_of, default=0, help="e.g. 100mbit, 4gbit; none")
    parser.add_argument("--delay", type=delay_of, default=0, help="from rank to rank, e.g. 2ms")
    parser.add_argument("--loss", type=loss_of, default=0, help="from rank to rank, e.g. 0.1%%")
    parser.add_argument("--pin", action="store_true", help="one core a rank, those of a host together")
    parser.add_argument("--plain", action="store_true", help="without MPI")
    parser.add_argument("--timeout", type=float, help="in seconds")
    parser.add_argument("--clean", action="store_true", help="only remove what is left over")
    parser.add_argument("--guard", metavar="LAB", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", help="behind --")
    options = parser.parse_args()
    if options.guard:
        guard(options.guard)
        return 0
    end_on_signals()
    try:
        if options.clean:
            check_machine()
            for name in remove_leftovers():
                print(f"removed {name}")
            return 0
        if not options.command:
            parser.error("there is no command to run")
        link = Link(options.rate, options.delay, options.loss)
        try:
            lab = NetworkLab(options.ranks, link, options.pin, options.ranks_per_host)
        except ValueError as error:
            parser.error(str(error))
        with lab:
            run = lab.run_plain if options.plain else lab.run
            return run(options.command, timeout=options.timeout)
    except CannotRun as error:
        print(f"network_lab: {error}", file=sys.stderr)
        return CANNOT


if __name__ == "__main__":
    sys.exit(main())
