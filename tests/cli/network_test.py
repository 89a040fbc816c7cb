#!/usr/bin/env python3
"""Training over a slow link: two ranks in network namespaces, 100 Mb/s between them.

Usage: network_test.py ONEBIT MPIRUN. Exits with 77 if namespaces are not allowed.
"""
import json
import os
import pathlib
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

SLOW = Link(rate_bits=100e6)
ENOUGH_SECONDS = 600
RECIPE = {
    "train_batch_size": 4,
    "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 3}},
    "model": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
              "intermediate_size": 128, "max_position_embeddings": 32},
    "data": {"sequence_length": 32, "max_predictions_per_sequence": 4},
    "run": {"steps": 16, "bucket_mb": 0.25},
}


def lab_namespaces(maker):
    return [name for name in network_lab.namespaces()
            if name.startswith(f"{network_lab.PREFIX}-{maker}-")]


def networks_of(test, maker):
    """Returns the kernel's numbers of its namespaces, which exist with or without a name. They are held
    open until the test ends: the kernel gives the number of a namespace that is gone to another one,
    and a process of a lab beside this one would count as left over."""
    numbers = set()
    for name in lab_namespaces(maker):
        file = open(f"/run/netns/{name}", "rb")
        test.addCleanup(file.close)
        numbers.add(os.fstat(file.fileno()).st_ino)
    return numbers


def left_over(maker, networks):
    """Returns namespaces, folders and processes of the labs that process `maker` has made."""
    name = f"{network_lab.PREFIX}-{maker}-"
    found = lab_namespaces(maker)
    found += [str(path) for path in pathlib.Path(tempfile.gettempdir()).glob(name + "*")]
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace")
            inside = (process / "ns/net").stat().st_ino in networks
        except OSError:
            continue  # the process has ended
        if inside or name in words:
            found.append(f"{process.name} {words}")
    return found


def sent_bytes(lab, rank):
    shown = network_lab.call("ip", "-n", lab.namespace(rank), "-j", "-s", "link", "show",
                             network_lab.PORT)
    return json.loads(shown)[0]["stats64"]["tx"]["bytes"]


class Training(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        text = "".join(f"the {word} was here {line}\n" + "\n" * (line == 7)
                       for word in ("king", "bird", "river", "child", "stone", "cloud")
                       for line in range(8))
        (self.folder / "text.txt").write_text(text)
        (self.folder / "recipe.json").write_text(json.dumps(RECIPE))
        subprocess.run([PROGRAM, "prepare", "--input", self.folder / "text.txt", "--output",
                        self.folder / "corpus", "--vocab-size", "80", "--format", "lines"],
                       check=True, capture_output=True)

    def pretrain(self, output):
        return [PROGRAM, "pretrain", "--recipe", self.folder / "recipe.json", "--data",
                self.folder / "corpus", "--output", self.folder / output, "--device", "cpu",
                "--threads", "1"]

    def steps(self, output):
        lines = (self.folder / output / "metrics.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["kind"] == "step"]

    def test_a_slow_link_changes_no_bit(self):
        log = self.folder / "log.txt"
        with open(log, "w", encoding="utf-8") as file, NetworkLab(2, SLOW) as lab:
            status = lab.run(self.pretrain("slow"), ENOUGH_SECONDS, stdout=file, stderr=file)
            self.assertEqual(status, 0, log.read_text())
            sent = [sent_bytes(lab, rank) for rank in range(2)]
            networks = networks_of(self, os.getpid())
        self.assertEqual(left_over(os.getpid(), networks), [])
        subprocess.run([MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                        "-np", "2", *self.pretrain("here")], check=True, capture_output=True,
                       timeout=ENOUGH_SECONDS)
        slow, here = self.steps("slow"), self.steps("here")
        self.assertEqual([step["loss"] for step in slow], [step["loss"] for step in here])
        self.assertEqual([step["phase"] for step in slow], ["warmup"] * 3 + ["compressed"] * 13)
        values = "global_step16/model/model.safetensors"
        self.assertEqual((self.folder / "slow" / values).read_bytes(),
                         (self.folder / "here" / values).read_bytes())
        # The ranks communicated over the link, not through memory.
        for rank in range(2):
            self.assertGreater(sent[rank], sum(step["wire_bytes"] for step in slow))

    def test_a_rank_that_fails_ends_the_run(self):
        log = self.folder / "log.txt"
        command = self.pretrain("never")
        command[command.index(self.folder / "corpus")] = self.folder / "nowhere"
        with open(log, "w", encoding="utf-8") as file, NetworkLab(2, SLOW) as lab:
            status = lab.run(command, ENOUGH_SECONDS, stdout=file, stderr=file)
            networks = networks_of(self, os.getpid())
        self.assertNotIn(status, (0, network_lab.TIMED_OUT))
        self.assertIn("nowhere", log.read_text())
        self.assertEqual(left_over(os.getpid(), networks), [])


class Lab(unittest.TestCase):
    def start(self, *words):
        lab = subprocess.Popen([sys.executable, "-B", ROOT / "tools/network_lab.py", *words],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lab.stdout.close)
        self.addCleanup(lab.wait)
        self.addCleanup(lab.kill)
        self.assertEqual(lab.stdout.readline(), "ready\n")
        return lab

    def test_it_cleans_up_whatever_ends_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            for way in ([], ["--plain"]):
                with self.subTest(signal=number, way=way):
                    lab = self.start(*way, "--", "sh", "-c", "echo ready; exec sleep 300")
                    networks = networks_of(self, lab.pid)
                    self.assertEqual(len(networks), 3)
                    lab.send_signal(number)
                    lab.wait(30)
                    until = time.monotonic() + 300  # the guard of a killed lab needs some time
                    while left_over(lab.pid, networks) and time.monotonic() < until:
                        time.sleep(0.05)
                    self.assertEqual(left_over(lab.pid, networks), [])

    def test_the_next_run_removes_what_a_killed_one_left(self):
        lab = self.start("--", "sh", "-c", "echo ready; exec sleep 300")
        name = f"{network_lab.PREFIX}-{lab.pid}-{network_lab.start_time(lab.pid)}"
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            if path.read_bytes().split(b"\0")[-3:-1] == [b"--guard", name.encode()]:
                os.kill(int(path.parent.name), signal.SIGKILL)
        lab.kill()
        lab.wait()
        networks = networks_of(self, lab.pid)
        self.assertEqual(len(networks), 3)
        with NetworkLab(1, Link()):
            self.assertEqual(left_over(lab.pid, networks), [])

    def test_a_later_lab_is_not_taken_for_what_is_left(self):
        with NetworkLab(1, Link()):
            networks = networks_of(self, os.getpid())
        for _ in range(6):
            with NetworkLab(1, Link()):
                self.assertEqual(networks & networks_of(self, os.getpid()), set())

    def test_what_a_killed_maker_was_making_is_removed(self):
        # The shell stands for an `ip` that waits for the kernel's lock while its maker is killed.
        name = f"{network_lab.PREFIX}-{os.getpid()}-1"
        with tempfile.TemporaryDirectory() as folder:
            slow = pathlib.Path(folder, "ip")
            slow.symlink_to("/bin/sh")
            command = f"sleep 1; ip netns add {name}-late; exec sleep 300"
            late = subprocess.Popen([slow, "-c", command, f"{name}-late"])
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", f"{name}-late"], check=False,
                            stderr=subprocess.DEVNULL)
            self.addCleanup(late.wait)
            self.addCleanup(late.kill)
            network_lab.remove(name)
            self.assertIsNotNone(late.poll())
            self.assertEqual(lab_namespaces(os.getpid()), [])

    def test_status_is_the_programs(self):
        # Open MPI 5 may wait for ever for a program that ends before it has connected its output.
        with NetworkLab(2, Link()) as lab:
            self.assertEqual(lab.run(["sleep", "1"]), 0)
            self.assertEqual(lab.run(["sh", "-c", "sleep 1; exit 3"], stderr=subprocess.DEVNULL), 3)
            self.assertEqual(lab.run_plain(["sh", "-c", "exit $RANK"]), 1)
            self.assertEqual(lab.run(["sleep", "60"], timeout=1, stderr=subprocess.DEVNULL),
                             network_lab.TIMED_OUT)


if __name__ == "__main__":
    PROGRAM, MPIRUN = sys.argv[1:3]
    network_lab.end_on_signals()
    try:
        with NetworkLab(2, SLOW):
            pass
    except network_lab.CannotRun as error:
        print(f"skipped: {error}")
        sys.exit(network_lab.CANNOT)
    unittest.main(argv=sys.argv[:1])
