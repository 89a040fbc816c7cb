#!/usr/bin/env python3
"""What `onebit launch` refuses before it starts anything, and what it shows instead of starting.
Usage: launcher_refusals_test.py ONEBIT
"""
import fcntl
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import launched_run  # noqa: E402
from launched_run import training  # noqa: E402


class Refusals(launched_run.FolderTest):
    """Nothing is started, and everything that is wrong is shown."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "agent").write_text("#!/bin/sh\nhost=$1; shift\ncase $host in\n"
                                          "  gone) echo no route to host >&2; exit 255 ;;\n"
                                          "  other) eval \"$(echo \"$*\" | sed s/corpus/no/)\" ;;\n"
                                          "  old) printf '{\"onebit\": \"0.0.9\"}' ;;\n"
                                          "  *) eval \"$*\" ;;\nesac\n")
        (cls.folder / "agent").chmod(0o755)

    def run_program(self, *words, env=None):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True,
                              check=False, cwd=self.folder, stdin=subprocess.DEVNULL,
                              env={**os.environ, **(env or {})})
        return done.returncode, done.stdout, done.stderr

    def launch(self, *options, more=(), env=None):
        status, output, error = self.run_program(
            "launch", *options, "--", *training(self.folder, "never", *more), env=env)
        self.assertFalse((self.folder / "never").exists())
        return status, output, error

    def test_one_table_of_all_hosts(self):
        status, _, error = self.launch("--hosts", "here,gone,other,old", "--agent",
                                       self.folder / "agent")
        self.assertEqual(status, 1)
        for part in ("nothing was started", "gone   cannot be reached: no route to host",
                     "/no: does not exist", "old    onebit 0.0.9, but on this machine it is "):
            self.assertIn(part, error)

    def test_data_that_are_no_store_and_a_folder_that_cannot_be_written_to(self):
        (self.folder / "texts").mkdir(exist_ok=True)
        words = ["pretrain", "--recipe", "recipe.json", "--data", "texts=2", "--data", "corpus",
                 "--valid", "name=recipe.json", "--output", "/proc/runs/mini"]
        written = "/proc/runs/mini: cannot be written to: cannot create a file in /proc: "
        for options in ([], ["--dry-run"]):
            status, output, error = self.run_program("launch", "--hosts", "localhost:2", *options,
                                                     "--", *words)
            self.assertEqual((status, output), (1, ""), error)
            for part in ("nothing was started", "localhost  texts: is not a store (it has no "
                         "manifest.json)", "localhost  recipe.json: is not a store",
                         "localhost  " + written):
                self.assertIn(part, error)
            # The logs are kept where the launcher runs, which no host is.
            status, output, error = self.run_program(
                "launch", "--hosts", "here", "--agent", self.folder / "agent", *options, "--",
                *words)
            self.assertEqual((status, output), (1, ""), error)
            for place in ("here ", "this machine"):
                self.assertRegex(error, rf"{place} +{written}")
            status, output, error = self.run_program("launch", "--hosts", "here", "--no-checks",
                                                     *options, "--", *words)
            self.assertEqual((status, output), (1, ""), error)
            self.assertIn("this machine  " + written, error)
            self.assertNotIn("store", error)

    def test_weights_and_names_of_stores_that_the_launchers_machine_has_not(self):
        words = ["pretrain", "--recipe", "recipe.json", "--data", "far=0.5", "--valid", "own=far",
                 "--output", "runs/mini"]
        status, output, error = self.run_program("launch", "--hosts", "localhost:2", "--dry-run",
                                                 "--", *words)
        self.assertEqual((status, output), (1, ""), error)
        self.assertIn("localhost  far: ", error)
        self.assertNotIn("far=0.5: ", error)
        self.assertNotIn("own=far: ", error)
        for option, value, part in (("--data", "far=0", "must be a number above 0"),
                                    ("--data", "far=", "must be a number above 0"),
                                    ("--data", "=3", "expected a folder, or folder=weight"),
                                    ("--valid", "=far", "expected a folder, or name=folder")):
            status, _, error = self.run_program("launch", "--hosts", "localhost:2", "--dry-run",
                                                "--", *words, option, value)
            self.assertEqual(status, 2, error)
            self.assertIn(part, error)

    def test_a_recipe_of_another_task(self):
        recipe = self.folder / "other.json"
        recipe.write_text('{"task": "tag"}')
        status, _, error = self.run_program(
            "launch", "--hosts", "localhost:2", "--dry-run", "--", "pretrain", "--recipe", recipe,
            "--data", "far", "--output", "runs/mini")
        self.assertEqual(status, 1, error)
        self.assertIn('key `task` is "tag", and this command trains "pretrain": run `onebit tag train`',
                      error)

    def test_an_interface_that_no_host_has(self):
        status, _, error = self.launch("--hosts", "a,b", "--agent", self.folder / "agent",
                                       "--interface", "eth7")
        self.assertEqual(status, 1)
        for host in "ab":
            self.assertRegex(error, rf"{host} +no interface that is up is eth7: there (is|are) ")
        for options in ([], ["--dry-run"]):
            status, output, error = self.launch("--hosts", "localhost:2", "--interface", "eth7",
                                                *options)
            self.assertEqual((status, output), (1, ""))
            self.assertRegex(error, r"localhost +no interface that is up is eth7: there (is|are) ")

    def test_one_machine_by_two_names(self):
        for options in ([], ["--dry-run"], ["--no-checks"]):
            status, output, error = self.launch("--hosts", "127.0.0.1:2,localhost:2", *options)
            self.assertEqual((status, output), (1, ""))
            self.assertIn("127.0.0.1, localhost are this machine: list it once, with all of its "
                          "ranks (127.0.0.1:4)", error)

    def test_a_checkpoint_that_no_host_has(self):
        for tag in ("global_step9", "global_step10"):
            (self.folder / "held" / tag).mkdir(parents=True)
        for options in ([], ["--dry-run"]):
            words = training(self.folder, "held", "--resume", "global_step11")
            status, output, error = self.run_program("launch", "--hosts", "localhost:2", *options,
                                                     "--", *words)
            self.assertEqual((status, output), (1, ""))
            self.assertIn("held: no host holds this checkpoint; there "
                          "are global_step9, global_step10", error)
        self.assertFalse((self.folder / "held" / "logs").exists())

    def test_a_folder_that_another_process_writes_to(self):
        (self.folder / "busy" / "global_step9").mkdir(parents=True)
        with open(self.folder / "busy" / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            status, output, error = self.run_program(
                "launch", "--hosts", "localhost:2", "--dry-run", "--",
                *training(self.folder, "busy", "--resume"))
        self.assertEqual((status, output), (1, ""))
        self.assertIn("busy: another process is writing to this folder", error)

    def test_one_table_of_all_lines(self):
        (self.folder / "hosts").write_text("a slots=2\nb\n\tc slots=x\n")
        status, _, error = self.launch("--hostfile", "hosts", "--include", "a@d",
                                       "--ranks-per-host", "4")
        self.assertEqual(status, 1)
        for part in ("hosts:2", "hosts:3", "--include", "d is not among the hosts", "hosts:1",
                     "a has 2 slots, but --ranks-per-host asks for 4"):
            self.assertIn(part, error)

    def test_what_the_command_line_shows(self):
        for words, status, message in (
                (["--hosts", "a", "--hostfile", "b"], 2, "give one of them"),
                (["--hosts", "a", "--hang-timeout", "soon"], 2, "must be a duration"),
                (["--hosts", "a,b", "--min-hosts", "3"], 1, "there are 2 hosts"),
                (["--hosts", "a", "--min-hosts", "3"], 1, "there is one host"),
                (["--hosts", "a,b", "--exclude", "a@b"], 1, "removes all hosts (a, b)"),
                (["--hosts", "a:2", "--include", "a:0", "--ranks-per-host", "2"], 1,
                 "--include  leaves 1 slot of 2 on a, but --ranks-per-host asks for 2"),
                (["--hosts", "a:3"], 1, "the batch does not divide evenly"),
                (["--hosts", "a:2", "--export", "MY_TOKEN=1"], 1, "secrets are not exported")):
            with self.subTest(words):
                self.assertEqual((got := self.launch(*words))[0], status, got)
                self.assertIn(message, got[2])
        for words, message in ((["--hosts", "a"], "command is required"),
                               (["--hosts", "a", "--", "fill", "x", "y"], "after --"),
                               (["--hosts", "a", "--", "pretrain", "--data", "x"],
                                "after --: --")):
            with self.subTest(words):
                status, _, error = self.run_program("launch", *words)
                self.assertEqual(status, 2, error)
                self.assertIn(message, error)

    def test_copies_need_as_many_hosts(self):
        for hosts, said in (("a:2", "there is one host"), ("a,b", "there are 2 hosts")):
            status, _, error = self.launch("--hosts", hosts, "--checkpoint-copies", "3")
            self.assertEqual(status, 1, error)
            self.assertIn(f"--checkpoint-copies 3: {said}: a host keeps each part of a "
                          "checkpoint only once", error)
        self.assertEqual(self.launch("--hosts", "a,b", "--checkpoint-copies", "0")[0], 2)
        # It travels as the ranks' option, and is the recipe's key.
        for words in (["--checkpoint-copies", "2"], []):
            more = [] if words else ["--set", "run.checkpoint_copies=2"]
            status, output, error = self.launch("--hosts", "a,b", "--dry-run", "--no-checks",
                                                *words, more=more)
            self.assertEqual(status, 0, error)
            self.assertIn(" ".join(words or more), output)

    def test_a_starter_that_cannot_start_the_ranks(self):
        path = self.folder / "without-srun"
        path.mkdir()
        for program in ("mpirun", "sh"):
            (path / program).symlink_to(shutil.which(program))
        for name, message in (
                ("mpich", "this onebit is built with Open MPI "),
                ("srun", "srun is not in PATH: leave --with out, or give --with openmpi")):
            for more in ([], ["--dry-run"], ["--dry-run", "--no-checks"]):
                with self.subTest(name, more=more):
                    status, output, error = self.launch("--hosts", "localhost:2", "--with", name,
                                                        *more, env={"PATH": str(path)})
                    self.assertEqual(status, 1, error)
                    self.assertIn(f"--with {name}: {message}", error)
                    self.assertEqual(output, "")

    def write_mpirun(self, folder, name, version):
        (self.folder / folder).mkdir(exist_ok=True)
        program = self.folder / folder / name
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)

    def test_an_mpirun_of_another_mpi(self):
        for number, (version, belongs) in enumerate((
                ("mpirun (Open MPI) 99.0.1", "Open MPI 99.0.1"),
                ("HYDRA build details: Version: 4.0.2", "MPICH 4.0.2"), ("hello", "another MPI"))):
            folder = f"wrong-mpirun-{number}"
            self.write_mpirun(folder, "mpirun", version)
            (self.folder / folder / "sh").symlink_to(shutil.which("sh"))
            for more in ([], ["--dry-run"], ["--no-checks"]):
                status, output, error = self.launch("--hosts", "localhost:2", *more,
                                                    env={"PATH": str(self.folder / folder)})
                self.assertEqual((status, output), (1, ""), error)
                self.assertIn(f"the mpirun in PATH belongs to {belongs}, but this onebit runs with "
                              "Open MPI ", error)
            # Debian's other name of the right one is used instead.
            own = subprocess.run([shutil.which("mpirun"), "--version"], capture_output=True,
                                 text=True, check=True).stdout.splitlines()[0]
            self.write_mpirun(folder, "mpirun.openmpi", own)
            status, output, error = self.launch("--hosts", "localhost:2", "--dry-run",
                                                env={"PATH": str(self.folder / folder)})
            self.assertEqual(status, 0, error)
            self.assertTrue(output.startswith("mpirun.openmpi "), output)

    def test_an_agent_that_mpirun_would_divide(self):
        for more in ([], ["--dry-run"]):
            status, output, error = self.launch("--hosts", "a,b", "--agent",
                                                "'/a b/agent' -q", *more)
            self.assertEqual((status, output), (1, ""), error)
            self.assertIn("--agent: Open MPI's mpirun takes no agent with blanks", error)

    def test_a_recipe_that_is_a_pipe(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        os.write(write, (self.folder / "recipe.json").read_bytes())
        os.close(write)
        done = subprocess.run(
            [self.program, "launch", "--hosts", "localhost:2", "--", "pretrain", "--recipe",
             f"/dev/fd/{read}", "--data", "corpus", "--output", "never"], capture_output=True,
            text=True, check=False, cwd=self.folder, pass_fds=[read])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"/dev/fd/{read}: is a pipe or a device, not a file", done.stderr)
        self.assertFalse((self.folder / "never").exists())

    def test_a_working_folder_that_a_host_has_not(self):
        agent = self.folder / "elsewhere"
        agent.write_text("#!/bin/sh\nshift\n"
                         f"exec sh -c \"$(echo \"$*\" | sed 's:cd [^ ]* :cd {self.folder}/nowhere :')\"\n")
        agent.chmod(0o755)
        status, _, error = self.launch("--hosts", "a,b", "--agent", agent)
        self.assertEqual(status, 1)
        for host in "ab":
            self.assertRegex(error, rf"{host} +the working folder is missing: .*/nowhere")

    def test_an_ipv6_address(self):
        status, _, error = self.launch("--hosts", "a,::1")
        self.assertEqual(status, 1)
        self.assertIn("\"::1\" is an IPv6 address: give a name or an IPv4 address", error)

    def test_hosts_of_a_batch_system_are_held_to_the_same_rules(self):
        (self.folder / "nodes").write_text("a\n-oProxyCommand=touch\n")
        for job in ({"PBS_NODEFILE": "nodes"},
                    {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "a,-oProxyCommand=touch"}):
            status, output, error = self.launch("--dry-run", env=job)
            self.assertEqual((status, output), (1, ""), error)
            self.assertIn("\"-oProxyCommand=touch\" is not a host name", error)

    def test_more_hosts_than_files_can_be_opened_for(self):
        hosts = ",".join(f"h{number}" for number in range(40))
        words = [self.program, "launch", "--hosts", hosts, "--dry-run", "--no-checks", "--",
                 *training(self.folder, "never", "--set", "train_batch_size=40")]
        for limits, status in (("-Sn 64", 0), ("-n 64", 1)):
            done = subprocess.run(["bash", "-c", f"ulimit {limits}; exec \"$@\"", "bash", *words],
                                  capture_output=True, text=True, check=False, cwd=self.folder)
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn("a launch over 40 hosts needs 184 open files, but this user may open "
                      "only 64", done.stderr)

    def test_inside_a_launcher_it_is_refused(self):
        status, _, error = self.launch("--hosts", "a", env={"OMPI_COMM_WORLD_SIZE": "2",
                                                            "OMPI_COMM_WORLD_RANK": "0"})
        self.assertEqual(status, 1)
        self.assertIn("start it once, without mpirun", error)

    def test_a_run_that_is_there_is_not_continued_unasked(self):
        (self.folder / "done").mkdir()
        (self.folder / "done/metrics.jsonl").write_text("")
        status, _, error = self.run_program("launch", "--hosts", "localhost:2", "--",
                                            *training(self.folder, "done"))
        self.assertEqual(status, 1)
        self.assertIn("contains a run already", error)

    def test_dry_run(self):
        status, output, error = self.launch(
            "--hosts", "a:1,b:1", "--agent", self.folder / "agent", "--dry-run", "--interface",
            "lo", "--export", "MINE=1")
        self.assertEqual(status, 0, error)
        for part in ("--host a:1,b:1", "-np 2", "_agent", "btl_tcp_if_include lo",
                     "-x MINE", "pretrain", "--threads"):
            self.assertIn(part, output)
        # Comments apart, a shell takes it.
        subprocess.run(["sh", "-n", "-c", output], check=True)

    @unittest.skipIf(socket.gethostname() == "localhost", "this machine has no other name")
    def test_an_agent_of_the_users_reaches_this_machine_by_its_name(self):
        own = ["--hosts", socket.gethostname(), "--dry-run"]
        status, output, error = self.launch(*own)
        self.assertEqual(status, 0, error)
        self.assertIn("started without MPI", error)
        status, output, error = self.launch(*own, "--agent", self.folder / "agent")
        self.assertEqual(status, 0, error)
        self.assertIn("started by openmpi", error)
        self.assertRegex(output, r"plm_[rs]sh_agent")

    def test_slurm(self):
        job = {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-2]",
               "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_CPUS_PER_TASK": "2"}
        status, output, error = self.launch("--dry-run", "--no-checks", env=job)
        self.assertEqual(status, 0, error)
        self.assertIn("2 ranks on 2 hosts (Slurm job 17)", error)
        self.assertIn("--host n1:1,n2:1", output)
        self.assertNotRegex(output, r"plm_[rs]sh_agent")
        (self.folder / "srun").symlink_to("/bin/true")
        status, output, error = self.launch(
            "--dry-run", "--no-checks", "--with", "srun",
            env={**job, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertIn("--ntasks=2", output)

    def test_doctor_compares_hosts(self):
        status, output, _ = self.run_program("doctor", "--hosts", "a,b", "--agent",
                                             self.folder / "agent", "--input", "corpus")
        self.assertEqual(status, 0, output)
        # A busy machine may give its two hosts links of two speeds, which is noted, not wrong.
        self.assertNotIn("Problems:", output)
        status, output, _ = self.run_program("doctor", "--hosts", "a", "--agent",
                                             self.folder / "agent", "--store", self.folder,
                                             "--run", "/proc/runs")
        self.assertEqual(status, 1, output)
        for part in ("is not a store", "/proc/runs: cannot be written to"):
            self.assertIn(part, output)
        status, output, _ = self.run_program("doctor", "--hosts", "a,gone,other", "--input",
                                             self.folder / "corpus", "--agent", self.folder / "agent")
        self.assertEqual(status, 1, output)
        for part in ("Problems:", "no route to host", "does not exist"):
            self.assertIn(part, output)


if __name__ == "__main__":
    launched_run.run_tests()
