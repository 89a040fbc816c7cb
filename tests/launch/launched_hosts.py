"""Network namespaces as the hosts of `onebit launch`, with an agent instead of ssh. Hosts can lose
their network or their power. Also the base class of tests that launch over them."""
import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import network_lab  # noqa: E402
from network_lab import Link, NetworkLab  # noqa: E402
from launched_run import LaunchedRun, prepare  # noqa: E402  (beside this file)


class Hosts(NetworkLab):
    """`with Hosts(3) as hosts`: provides hosts.names and hosts.options for the launcher, whose
    command must be prefixed with hosts.before."""

    def __init__(self, count, link=Link(), own_disks=None):
        """`own_disks`: a run's folder, of which each host and this machine have their own copy."""
        super().__init__(count, link)
        self.own_disks = own_disks
        self.names = [self.address(rank) for rank in range(count)]

    def write_agent(self):
        super().write_agent()
        self.reachable = self.folder / "reachable"
        self.reachable.mkdir()
        for name in self.names:
            (self.reachable / name).touch()
        self.agent = self.folder / "remote"  # mpirun adds options if the name is ssh
        self.agent.write_text(
            f"#!/bin/sh\nif [ ! -e {self.reachable}/$1 ]; then\n"
            "  echo \"ssh: connect to host $1: No route to host\" >&2; exit 255\nfi\n"
            f"exec {self.folder}/agent \"$@\"\n", encoding="utf-8")
        self.agent.chmod(0o700)

    def disk(self, host):
        """Returns this machine's path of the run's folder on a host's disk."""
        return self.own_disks.with_name(f"{self.own_disks.name}-of-host{host}")

    def inside(self, host):
        words = super().inside(host)
        if self.own_disks is None:
            return words
        self.disk(host).mkdir(exist_ok=True)
        self.own_disks.mkdir(exist_ok=True)
        mount = shlex.join(["mount", "--bind", str(self.disk(host)), str(self.own_disks)])
        return words + ["unshare", "--mount", "sh", "-c", f"{mount} && exec \"$@\"", "sh"]

    @property
    def before(self):
        return ["ip", "netns", "exec", self.switch]

    @property
    def options(self):
        return ["--agent", self.agent, "--interface", "10.77.0.0/24", "--bind", "none",
                "--threads", "1"]

    def pull_cable(self, rank):
        (self.reachable / self.names[rank]).unlink(missing_ok=True)
        network_lab.call("ip", "-n", self.namespace(rank), "link", "set", network_lab.PORT, "down")

    def plug_in(self, rank):
        network_lab.call("ip", "-n", self.namespace(rank), "link", "set", network_lab.PORT, "up")
        (self.reachable / self.names[rank]).touch()

    def free_links(self):
        """Removes the rates and delays of all links."""
        for rank in range(self.hosts):
            for namespace, device in ((self.namespace(rank), network_lab.PORT),
                                      (self.switch, f"port{rank}")):
                network_lab.call("tc", "-n", namespace, "qdisc", "delete", "dev", device, "root")

    def plain_rate(self, sender, receiver, count=1 << 20):
        """Returns the bits per second of a plain transfer between two hosts at this moment."""
        serving = ("import socket, sys, time\n"
                   "server = socket.create_server(('', 7777)); print(flush=True)\n"
                   "line = server.accept()[0]; start = time.monotonic(); left = int(sys.argv[1])\n"
                   "while left > 0: left -= len(line.recv(1 << 16))\n"
                   "print(time.monotonic() - start)\n")
        sending = ("import socket, sys\n"
                   "line = socket.create_connection((sys.argv[2], 7777))\n"
                   "line.sendall(bytes(int(sys.argv[1])))\n")
        words = [sys.executable, "-c"]
        with subprocess.Popen([*self.inside(receiver), *words, serving, str(count)],
                              stdout=subprocess.PIPE, text=True) as server:
            server.stdout.readline()
            subprocess.run([*self.inside(sender), *words, sending, str(count),
                            self.names[receiver]], check=True)
            return 8 * count / float(server.stdout.readline())

    def close_ports(self, rank, first, last, to=None):
        """Drops the host's answers from these TCP ports (to all hosts, or to the host `to`), like a
        firewall that drops incoming packets."""
        toward = ["to", self.names[to]] if to is not None else []
        network_lab.call("ip", "-n", self.namespace(rank), "rule", "add", *toward, "ipproto", "tcp",
                         "sport", f"{first}-{last}", "blackhole")

    def open_ports(self, rank):
        """Undoes close_ports()."""
        rules = network_lab.call("ip", "-n", self.namespace(rank), "rule", "list")
        for line in rules.splitlines():
            if "blackhole" in line:
                network_lab.call("ip", "-n", self.namespace(rank), "rule", "delete", "priority",
                                 line.partition(":")[0])

    def cut_power(self, rank):
        """Stops the host without closing its connections."""
        self.pull_cable(rank)
        for _ in range(3):
            for pid in network_lab.processes_in(self.namespace(rank)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class HostsTest(unittest.TestCase):
    """Base class of tests that run over such hosts, in their own folder."""

    program = None

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        prepare(self.program, self.folder)

    def launch(self, hosts, output, *options, more=()):
        run = LaunchedRun(self.program, self.folder, output,
                          [*hosts.options, "--restart-pause", "200ms", *options], more,
                          hosts.before)
        self.addCleanup(run.close)
        return run

    def wait_for(self, run, words, seconds=90):
        until = time.monotonic() + seconds
        while words not in run.text():
            self.assertLess(time.monotonic(), until, run.text())
            self.assertIsNone(run.process.poll(), run.text())
            time.sleep(0.05)


def run_tests():
    """The main program of a test file: ONEBIT [TEST...]."""
    HostsTest.program = os.path.abspath(sys.argv[1])
    network_lab.end_on_signals()
    try:
        with Hosts(2, Link()):
            pass
    except network_lab.CannotRun as error:
        print(f"skipped: {error}")
        sys.exit(network_lab.CANNOT)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
