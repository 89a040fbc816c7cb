#!/usr/bin/env python3
"""`onebit launch` over hosts that are network namespaces, each with its own disk.

Usage: launcher_disks_test.py ONEBIT. Exits with 77 if namespaces are not allowed.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import launched_hosts  # noqa: E402
from launched_hosts import Hosts, HostsTest, network_lab  # noqa: E402
from launched_run import ENOUGH_SECONDS, LaunchedRun  # noqa: E402


class Disks(HostsTest):
    def launch_on_disks(self, hosts, output, *options, more=()):
        run = self.launch(hosts, output, "--hosts", ",".join(hosts.names), "--host-timeout", "6s",
                          "--hang-timeout", "30s", *options, more=more)
        run.records = hosts.disk(0)
        return run

    def rank_log(self, run, attempt):
        return next((run.folder / f"logs/attempt-{attempt}").glob("rank-0.*")).read_text()

    def slow_program(self, condition):
        """Returns a script that runs the program. If the shell's `condition` holds, it first
        creates the file "asked" and sleeps."""
        path = self.folder / "slow"
        path.write_text(f"#!/bin/sh\nif {condition}; then touch {self.folder}/asked; sleep 20; fi\n"
                        f"exec {self.program} \"$@\"\n")
        path.chmod(0o755)
        (self.folder / "asked").unlink(missing_ok=True)
        return path

    def end_while_it_waits(self, hosts, output, condition, number, more=()):
        """Sends a signal to a launch while slow_program() sleeps, and returns its last line."""
        run = self.launch_on_disks(hosts, output, "--program", self.slow_program(condition),
                                   more=more)
        until = time.monotonic() + ENOUGH_SECONDS
        while not (self.folder / "asked").exists():
            self.assertLess(time.monotonic(), until, run.text())
            time.sleep(0.05)
        time.sleep(2)  # lets the other host answer
        run.process.send_signal(number)
        self.assertEqual(run.wait(), 75, run.text())
        return run.text().splitlines()[-1]

    def test_the_checkpoint_that_an_early_end_names(self):
        output = "early"
        start = "[ \"$1\" = pretrain ]"
        # One of the two hosts has answered.
        check = "[ \"$1\" = doctor ] && [ \"$(uname -n)\" = host1 ]"
        nobody = "[ \"$1\" = doctor ]"
        with Hosts(2, own_disks=self.folder / output) as hosts:
            said = self.end_while_it_waits(hosts, output, start, signal.SIGTERM)
            self.assertIn("--resume to continue from the beginning", said)
            run = self.launch_on_disks(hosts, output)
            run.reach(25)
            run.process.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(), 75, run.text())
            tag = (hosts.disk(0) / "latest").read_text().strip()
            for condition, more, number in ((start, ["--resume"], signal.SIGUSR1),
                                            (check, ["--resume"], signal.SIGINT)):
                with self.subTest(condition, more=more):
                    said = self.end_while_it_waits(hosts, output, condition, number, more)
                    self.assertIn(f"start the same command with --resume to continue from {tag}",
                                  said)
            # Only the hosts have the run, the launcher's machine does not.
            run = self.launch_on_disks(hosts, output)
            self.assertEqual(run.wait(), 1, run.text())
            for host in hosts.names:
                self.assertIn(f"{host}  {run.folder}: contains a run already ({tag}); add --resume",
                              run.text())
            said = self.end_while_it_waits(hosts, output, nobody, signal.SIGTERM, ["--resume"])
            self.assertIn("--resume to continue from its newest checkpoint, if a host has one", said)
            self.assertEqual(run.left_over(), [])

    def test_a_disk_that_cannot_be_written_to_is_found_before_the_start(self):
        output = "unwritable"
        with Hosts(4, own_disks=self.folder / output) as hosts, contextlib.ExitStack() as mounted:
            for host, options in ((1, "ro"), (2, "size=64k"), (3, "size=200k")):
                disk = hosts.disk(host)
                disk.mkdir(exist_ok=True)
                network_lab.call("mount", "-t", "tmpfs", "-o", options, "tmpfs", disk)
                mounted.callback(network_lab.call, "umount", "--lazy", disk)
            with contextlib.suppress(OSError):
                (hosts.disk(2) / "recipe.json").write_bytes(bytes(1 << 17))
            for options in (["--dry-run"], []):
                run = self.launch_on_disks(hosts, output, *options,
                                           more=["--set", "train_batch_size=12"])
                self.assertEqual(run.wait(), 1, run.text())
                self.assertIn("nothing was started", run.text())
                for host, reason in ((1, "Read-only file system"), (2, "No space left on device")):
                    self.assertRegex(run.text(), rf"{hosts.names[host]} +{run.folder}: cannot be "
                                                 rf"written to: .*: {reason}")
                self.assertRegex(run.text(), rf"{hosts.names[3]} +{run.folder}: 20\d kB are free, "
                                             r"one checkpoint takes at least \d+ kB: free some")
                self.assertNotRegex(run.text(), rf"{hosts.names[0]} +{run.folder}:")
                self.assertEqual(list(run.folder.iterdir()), [])
                self.assertEqual(list(hosts.disk(0).iterdir()), [])

    def test_hosts_with_disks_of_their_own(self):
        for lost in (1, 0):
            output = f"disks-{lost}"
            with Hosts(2, own_disks=self.folder / output) as hosts:
                run = self.launch_on_disks(hosts, output, "--min-hosts", "1",
                                           "--checkpoint-copies", "2")
                run.reach(45)
                # Each host has a copy of the other's part, and the launcher's machine has nothing.
                self.assertFalse((run.folder / "latest").exists())
                hosts.cut_power(lost)
                left = run.records = hosts.disk(1 - lost)
                self.assertEqual(run.wait(), 0, run.text())
                saved = re.search(r"the run starts again from global_step(\d+)", run.text())
                self.assertIsNotNone(saved, run.text())
                self.assertGreaterEqual(int(saved[1]), 20)
                log = self.rank_log(run, 2)
                resumed = re.search(r"resumed from global_step(\d+)", log)
                self.assertIsNotNone(resumed, log)
                # The host may have ended before it could report the last checkpoint.
                self.assertGreaterEqual(int(resumed[1]), int(saved[1]))
                self.assertEqual([one["step"] for one in run.steps()], list(range(1, 241)))
                self.assertTrue(run.model())
                self.assertEqual(run.left_over(), [])
                self.assertEqual([path.name for path in left.glob(".disk-*")], [])

    def test_a_new_disk_gets_what_it_needs(self):
        output = "new-disk"
        with Hosts(2, own_disks=self.folder / output) as hosts:
            run = self.launch_on_disks(hosts, output, "--checkpoint-copies", "2")
            run.reach(45)
            hosts.cut_power(1)
            self.wait_for(run, "checking again")
            for path in hosts.disk(1).iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            hosts.plug_in(1)
            self.assertEqual(run.wait(), 0, run.text())
            self.assertIn("attempt 2: 2 ranks", run.text())
            self.assertRegex(self.rank_log(run, 2),
                             r"shards 0-1 from host0; host1 received the model from another disk")
            tag = (hosts.disk(1) / "latest").read_text().strip()
            for name in ("state.json", "model/model.safetensors"):
                self.assertEqual((hosts.disk(0) / tag / name).read_bytes(),
                                 (hosts.disk(1) / tag / name).read_bytes())
            self.assertEqual(len(run.steps()), 240)
            # With the same ranks, the result equals that of an uninterrupted run, bit for bit.
            here = LaunchedRun(self.program, self.folder, "unbroken",
                               ["--hosts", "localhost:2", "--bind", "none", "--threads", "1"])
            self.assertEqual(here.wait(), 0, here.text())
            self.assertEqual(run.model(), here.model())

    def test_a_damaged_shard_is_replaced(self):
        output = "damaged"
        more = ["--set", "run.keep_last=9", "--set", "run.steps=40"]
        with Hosts(2, own_disks=self.folder / output) as hosts:
            run = self.launch_on_disks(hosts, output, "--checkpoint-copies", "2", more=more)
            self.assertEqual(run.wait(), 0, run.text())
            name = "global_step40/optimizer-00001-of-00002.safetensors"
            damaged, copy = (hosts.disk(host) / name for host in (1, 0))
            with open(damaged, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                last = file.read(1)
                file.seek(-1, os.SEEK_END)
                file.write(bytes([last[0] ^ 1]))
            self.assertNotEqual(damaged.read_bytes(), copy.read_bytes())
            more = ["--resume", "--set", "run.keep_last=9", "--set", "run.steps=60"]
            run = self.launch_on_disks(hosts, output, "--checkpoint-copies", "2", more=more)
            self.assertEqual(run.wait(), 0, run.text())
            self.assertRegex(self.rank_log(run, 2), rf"host1: .*{name}: damaged.*: replaced by "
                                                    r"the copy of another disk")
            self.assertEqual(damaged.read_bytes(), copy.read_bytes())
            self.assertEqual([one["step"] for one in run.steps()], list(range(1, 61)))
            # Every disk has the run's records.
            for host in range(2):
                self.assertTrue(list((hosts.disk(host) / "tensorboard").iterdir()))
            # The launcher's machine has no model, so its message names the hosts that have it.
            self.assertRegex(run.text(), r"the model is in .* on each of host0, host1; try there: ")
            self.assertIn(f"{run.folder} is on the disks of {', '.join(hosts.names)}: this machine "
                          "has only the logs", run.text())

    def test_a_small_disk_of_one_host_is_warned_of(self):
        output = "small"
        with Hosts(2, own_disks=self.folder / output) as hosts:
            hosts.disk(1).mkdir(exist_ok=True)
            network_lab.call("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", hosts.disk(1))
            try:
                run = self.launch_on_disks(hosts, output, more=[
                    "--set", "run.keep_last=900", "--set", "run.checkpoint_every=1000", "--set",
                    "run.steps=1000000"])
                run.reach(5)
                run.process.send_signal(signal.SIGTERM)
                self.assertEqual(run.wait(), 75, run.text())
            finally:
                network_lab.call("umount", "--lazy", hosts.disk(1))
            self.assertRegex(run.text(), r"warning: host1: .* are free, but .* are needed")
            self.assertNotIn("warning: host0:", run.text())

    def test_a_lost_disk_without_copies(self):
        output = "no-copies"
        with Hosts(2, own_disks=self.folder / output) as hosts:
            run = self.launch_on_disks(hosts, output, "--min-hosts", "1", "--host-wait", "3s")
            run.reach(45)
            hosts.cut_power(1)
            self.assertEqual(run.wait(), 1, run.text())
            self.assertIn("cannot start on the remaining hosts and waits for the others",
                          run.text())
            self.assertIn("1 of 2 hosts can be used, 2 are needed (see the lines above): "
                          "without the others", run.text())
            self.assertIn("no checkpoint is intact on the disks of host0", run.text())
            self.assertIn("shard 1 of 2, stored on host1, is missing or damaged", run.text())
            self.assertEqual(run.left_over(), [])


if __name__ == "__main__":
    launched_hosts.run_tests()
