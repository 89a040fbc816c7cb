#!/usr/bin/env python3
"""`onebit launch` with real runs on this machine: logs, exit statuses, restarts, and leftovers.
Usage: launcher_test.py ONEBIT
"""
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import launched_run  # noqa: E402
from launched_run import ENOUGH_SECONDS, LaunchedRun, training  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ["--hosts", "localhost:2", "--bind", "none", "--threads", "1"]


class Launcher(launched_run.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.unbroken = LaunchedRun(cls.program, cls.folder, "unbroken", HERE)
        cls.status = cls.unbroken.wait()

    def launch(self, output, *options, more=(), before=()):
        run = LaunchedRun(self.program, self.folder, output, [*HERE, *options], more, before)
        self.addCleanup(run.close)
        return run

    def same_as_unbroken(self, run):
        self.assertEqual([step["loss"] for step in run.steps()],
                         [step["loss"] for step in self.unbroken.steps()])
        self.assertEqual(run.model(), self.unbroken.model())
        self.assertEqual(run.left_over(), [])

    def test_a_run_that_goes_well(self):
        text = self.unbroken.text()
        self.assertEqual(self.status, 0, text)
        self.assertIn("2 ranks on 1 host (--hosts), started by openmpi", text)
        self.assertIn("attempt 1: 2 ranks on localhost", text)
        self.assertRegex(text, r"steps +0 to 240\n")
        self.assertNotIn("\x1e", text)
        logs = self.unbroken.folder / "logs/attempt-1"
        self.assertRegex((logs / "rank-0.localhost.log").read_text(), r"steps +240\n")
        self.assertIn("mpirun", (logs / "launcher.log").read_text().splitlines()[1])
        self.assertEqual(self.unbroken.left_over(), [])

    def test_a_killed_rank_is_restarted_bit_for_bit(self):
        run = self.launch("killed", "--restart-pause", "100ms")
        for step, rank in ((30, 1), (90, 0)):
            run.reach(step)
            os.kill(run.rank_pid(rank), signal.SIGKILL)
            attempt = 1 + (step == 90)
            until = time.monotonic() + ENOUGH_SECONDS
            while f"attempt {attempt + 1}:" not in run.text() and time.monotonic() < until:
                time.sleep(0.02)
        self.assertEqual(run.wait(), 0, run.text())
        self.assertIn("rank 1 on localhost was killed by signal 9", run.text())
        self.assertIn("rank 0 on localhost was killed by signal 9", run.text())
        self.assertIn("the run starts again from global_step", run.text())
        self.same_as_unbroken(run)

    def test_a_restart_trains_what_the_launch_began_with(self):
        recipe = self.folder / "recipe.json"
        before = recipe.read_text()
        self.addCleanup(recipe.write_text, before)
        run = self.launch("changing", "--restart-pause", "100ms")
        run.reach(30)
        recipe.write_text(before.replace("0.001", "0.004"))
        self.assertNotEqual(recipe.read_text(), before)
        os.kill(run.rank_pid(1), signal.SIGKILL)
        wrong = (f"localhost is excluded: {recipe}: different content than when this launch began: "
                 "restore the previous content")
        until = time.monotonic() + ENOUGH_SECONDS
        while wrong not in run.text() and time.monotonic() < until:
            time.sleep(0.05)
        self.assertIn(wrong, run.text())
        recipe.write_text(before)
        self.assertEqual(run.wait(), 0, run.text())
        self.same_as_unbroken(run)

    def test_a_stopped_rank_is_a_hang(self):
        run = self.launch("stopped", "--restart-pause", "100ms", "--hang-timeout", "5s")
        run.reach(30)
        os.kill(run.rank_pid(1), signal.SIGSTOP)
        self.assertEqual(run.wait(), 0, run.text())
        self.assertRegex(run.text(), r"no step for \d+ s after step \d+: rank 1 on localhost is "
                                     r"stopped(; it reached step \d+ before it was ended)? "
                                     r"\(ended everywhere in \d\.")
        self.same_as_unbroken(run)

    def test_a_killed_mpirun_leaves_no_rank(self):
        run = self.launch("headless", "--restart-pause", "100ms")
        run.reach(30)
        os.kill(run.starter_pid(), signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text())
        self.assertIn("mpirun was killed by signal 9", run.text())
        self.same_as_unbroken(run)

    def test_what_mpirun_says_of_a_killed_guard(self):
        run = LaunchedRun(self.program, self.folder, "unguarded",
                          ["--hosts", "localhost:1", "--with", "openmpi", "--bind", "none",
                           "--threads", "1", "--max-restarts", "0"])
        self.addCleanup(run.close)
        run.reach(5)
        os.kill(run.guard_pid(0), signal.SIGKILL)
        self.assertEqual(run.wait(), 1, run.text())
        # The name of Open MPI 4's starter, or of 5's, which writes this in two lines.
        self.assertRegex(run.text(), r"attempt 1 failed at step \d+: mpirun ended with status \d+: "
                                     r"(mpirun|prterun) noticed that process rank 0 .*signal 9")
        self.assertEqual(run.left_over(half_written=False), [])

    def test_an_event_that_the_launcher_does_not_know(self):
        program = self.folder / "other-events"
        program.write_text("#!/bin/bash\n[ -n \"$ONEBIT_EVENTS_FD\" ] && "
                           "echo jump 3 > /proc/self/fd/$ONEBIT_EVENTS_FD\n"
                           f"exec {self.program} \"$@\"\n")
        program.chmod(0o755)
        run = self.launch("other-events-run", "--program", program,
                          more=["--set", "run.steps=64"])
        self.assertEqual(run.wait(), 0, run.text())
        self.assertEqual(run.text().count("\"jump 3\", which is unknown to this launcher"), 1)
        log = (run.folder / "logs/attempt-1/launcher.log").read_text()
        for rank in range(2):
            self.assertIn(f"rank {rank} on localhost reports \"jump 3\"", log)

    def test_a_host_that_takes_long_to_end_its_processes_is_awaited(self):
        program = self.folder / "slow-to-end"
        program.write_text("#!/bin/bash\n"
                           f"[ \"$1 $2\" = 'host watch' ] || exec {self.program} \"$@\"\n"
                           "echo ready\nwhile read -r line; do echo beat; [ $line != end ] || break; "
                           "done\nfor i in $(seq 14); do sleep 1; echo beat; done\n"
                           f"touch {self.folder}/has-ended; echo ended 0; sleep 60\n")
        program.chmod(0o755)
        run = self.launch("slow-to-end-run", "--program", program, more=["--set", "run.steps=4"])
        self.addCleanup(run.remove_scratch)  # as this watch does not
        self.assertEqual(run.wait(), 0, run.text())
        self.assertTrue((self.folder / "has-ended").exists())

    def test_what_latest_says_is_no_reason_not_to_go_on(self):
        run = self.launch("latest", more=["--set", "run.steps=40"])
        self.assertEqual(run.wait(), 0, run.text())
        for damage in (b"", b"global_step39"):
            (run.folder / "global_step40/model/config.json").write_text("{")
            (run.folder / "latest").write_bytes(damage)
            again = self.launch("latest", more=["--resume", "--set", "run.steps=40"])
            self.assertEqual(again.wait(), 0, again.text())
            self.assertIn("the run continues from global_step20 instead", again.text())
            self.assertEqual((run.folder / "latest").read_text(), "global_step40")
        self.assertEqual([step["loss"] for step in run.steps()],
                         [step["loss"] for step in self.unbroken.steps()][:40])

    def test_a_killed_launcher_leaves_no_process_and_a_run_that_continues(self):
        run = self.launch("orphan")
        run.reach(30)
        run.process.kill()
        run.process.wait()
        self.assertEqual(run.left_over(half_written=False), [])
        (run.folder / "global_step30.partial").mkdir(exist_ok=True)
        again = self.launch("orphan", more=["--resume"])
        self.assertEqual(again.wait(), 0, again.text())
        self.same_as_unbroken(again)

    def test_asked_to_end_it_makes_a_checkpoint_and_can_continue(self):
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            with self.subTest(number):
                output = f"asked-{int(number)}"
                run = self.launch(output)
                run.reach(30)
                run.process.send_signal(number)
                self.assertEqual(run.wait(), 75, run.text())
                self.assertIn("asked to end and has saved step", run.text())
                self.assertIn("start the same command with --resume", run.text())
                self.assertEqual(run.left_over(), [])
                # The requested checkpoint lies between two periodic ones.
                self.assertEqual((run.folder / "latest").read_text().strip(),
                                 f"global_step{run.step()}")
        again = self.launch(output, more=["--resume"])
        self.assertEqual(again.wait(), 0, again.text())
        self.same_as_unbroken(again)

    def test_signals_that_nohup_ignores_stay_ignored(self):
        ignoring = ["sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh"]
        run = self.launch("nohup", before=ignoring)
        run.reach(30)
        for number in (signal.SIGHUP, signal.SIGINT):
            run.process.send_signal(number)
        self.assertEqual(run.wait(), 0, run.text())
        self.assertNotIn("asked to end", run.text())
        self.same_as_unbroken(run)

    def test_a_closed_terminal_asks_once(self):
        run = self.launch("closed")
        run.reach(30)
        for _ in range(3):
            run.process.send_signal(signal.SIGHUP)
            time.sleep(0.1)
        self.assertEqual(run.wait(), 75, run.text())
        self.assertIn("asked to end and has saved step", run.text())

    def test_an_error_that_repeats_is_not_tried_for_ever(self):
        run = self.launch("wrong", "--restart-pause", "100ms", "--max-restarts", "50",
                          more=["--set", "run.max_skipped_steps=1", "--set",
                                "optimizer.params.lr=1e30"])
        self.assertEqual(run.wait(), 1, run.text())
        self.assertIn("not started again: it ended 2 times in a row with the same error",
                      run.text())
        self.assertEqual(run.left_over(), [])

    def test_a_starter_that_ends_well_before_its_run_has_failed(self):
        # Open MPI 5.0 ends so after it has lost the connection to a host.
        starter = self.folder / "starters/mpirun"
        starter.parent.mkdir()
        starter.write_text(f"#!/bin/sh\n[ \"$1\" != --version ] || exec {shutil.which('mpirun')} $1\n"
                           "echo 'communication with a daemon is lost' >&2\n")
        starter.chmod(0o755)
        run = self.launch("lost", "--max-restarts", "0", before=[
            "env", f"PATH={starter.parent}:{os.environ['PATH']}"])
        self.assertEqual(run.wait(), 1, run.text())
        self.assertIn("mpirun ended with status 0: communication with a daemon is lost",
                      run.text())

    def test_an_error_before_training_ends_the_launch(self):
        folder = self.folder / "locked"
        folder.mkdir()
        with open(folder / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            run = self.launch("locked", "--no-checks", "--restart-pause", "100ms")
            self.assertEqual(run.wait(), 1, run.text())
        self.assertIn("not started again: it ended with an error of its own before it "
                      "started training", run.text())
        self.assertEqual([path.name for path in (folder / "logs").iterdir()], ["attempt-1"])

    def test_a_tag_that_is_not_there_is_tried_once(self):
        before = len(self.unbroken.ids())
        run = self.launch("unbroken", "--no-checks", "--restart-pause", "100ms",
                          more=["--resume", "nope"])
        self.assertEqual(run.wait(), 1, run.text())
        self.assertIn("contains no checkpoint \"nope\"; it contains global_step", run.text())
        self.assertIn("not started again: it ended with an error of its own", run.text())
        self.assertEqual(len(run.ids()), before + 1)

    def test_copies_on_one_disk_are_one_copy(self):
        done = subprocess.run([self.program, *training(self.folder, "one-disk", "--checkpoint-copies", "2",
                                                  "--set", "run.steps=4")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("checkpoint_copies: 2 requested, but all ranks see one disk", done.stderr)
        shards = (self.folder / "one-disk/global_step4").glob("optimizer-*")
        self.assertEqual(len(list(shards)), 1)

    def test_no_restarts_are_no_restarts(self):
        run = self.launch("once", "--max-restarts", "0")
        run.reach(5)
        os.kill(run.rank_pid(0), signal.SIGKILL)
        self.assertEqual(run.wait(), 1, run.text())
        self.assertIn("not started again: --max-restarts is 0", run.text())
        self.assertEqual(run.left_over(), [])


class Documents(launched_run.FolderTest):
    """Tests the commands of docs/cluster.md and the scripts that it mentions."""

    def write_program(self, name, text):
        (self.folder / name).write_text("#!/bin/bash\n" + text)
        (self.folder / name).chmod(0o755)

    def test_every_command_is_understood(self):
        (self.folder / "recipes").symlink_to(ROOT / "recipes")
        (self.folder / "hosts").write_text("node1 slots=2\nnode2 slots=2\n")
        self.write_program("agent", "shift; eval \"$*\"\n")
        agent = f" --agent {self.folder}/agent "
        commands = [line for block in (ROOT / "docs/cluster.md").read_text().split("```")[1::2]
                    for line in block.splitlines() if line.startswith("onebit ")]
        self.assertGreater(len(commands), 6)
        for line in commands:
            with self.subTest(line):
                words = line.replace("--dry-run ", "").replace(
                    "onebit doctor", f"{self.program} doctor{agent}").replace(
                        "onebit launch", f"{self.program} launch --dry-run --no-checks{agent}")
                done = subprocess.run(["bash", "-c", words], capture_output=True, text=True,
                                      check=False, cwd=self.folder, timeout=ENOUGH_SECONDS)
                self.assertEqual(done.returncode, 0, done.stderr)
                if "launch" in line:
                    self.assertIn("mpirun", done.stdout)

    def test_the_script_for_slurm_requeues_itself(self):
        self.write_program("scontrol", "echo \"$@\" > requeued\n")
        self.write_program("onebit", "trap 'sleep 0.3; exit 75' USR1\necho \"$@\" > started\n"
                           "[ -n \"$END_WITH\" ] && exit \"$END_WITH\"\n"
                           "while :; do sleep 0.05; done\n")
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}",
                       "SLURM_JOB_ID": "17"}
        script = ["bash", ROOT / "examples/slurm/pretrain.sbatch"]
        job = subprocess.Popen(script, cwd=self.folder, env=environment)
        self.addCleanup(job.kill)
        until = time.monotonic() + ENOUGH_SECONDS
        while not (self.folder / "started").exists() and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.3)
        job.send_signal(signal.SIGUSR1)
        self.assertEqual(job.wait(ENOUGH_SECONDS), 0)
        self.assertEqual((self.folder / "requeued").read_text(), "requeue 17\n")
        started = (self.folder / "started").read_text()
        self.assertTrue(started.startswith("launch "), started)
        self.assertIn("--resume", started)
        (self.folder / "requeued").unlink()
        for status in (0, 1):
            done = subprocess.run(script, cwd=self.folder, check=False,
                                  env={**environment, "END_WITH": str(status)})
            self.assertEqual(done.returncode, status)
            self.assertFalse((self.folder / "requeued").exists())


if __name__ == "__main__":
    launched_run.run_tests()
