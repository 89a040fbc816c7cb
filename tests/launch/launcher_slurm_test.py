#!/usr/bin/env python3
"""examples/slurm/pretrain.sbatch in a real Slurm: the job reaches its time limit, writes a
checkpoint, is requeued, and continues to its end. Also tests ranks that srun starts.

Usage: launcher_slurm_test.py ONEBIT. Exits with 77 if Slurm or namespaces are not available.
"""
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import launched_hosts  # noqa: E402
import slurm_cluster  # noqa: E402
from launched_run import LaunchedRun, RunFolder, prepare  # noqa: E402

SCRIPT = launched_hosts.ROOT / "examples/slurm/pretrain.sbatch"
# A dense exchange takes 0.3 s over these links, so the run lasts longer than the 30 seconds between
# Slurm's checks of time limits.
LINK = slurm_cluster.Link(rate_bits=8e6)
RUN = {"steps": 240, "checkpoint_every": 100}
# Slurm sends the signal at its last check before the requested time. With a limit of a minute that
# is the first check after the job's fifth second.
SIGNAL = "--signal=B:USR1@25"
ENOUGH_SECONDS = 600


class Slurm(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        (self.folder / "onebit").symlink_to(PROGRAM)
        prepare(PROGRAM, self.folder, **RUN)
        recipe = self.folder / "recipe.json"
        recipe.write_text(recipe.read_text().replace('"freeze_step": 60', '"freeze_step": 200'))

    def variables(self, output):
        return {"PATH": f"{self.folder}:{os.environ['PATH']}",
                "RECIPE": str(self.folder / "recipe.json"), "DATA": str(self.folder / "corpus"),
                "OUTPUT": str(self.folder / output), "OMP_NUM_THREADS": "1"}

    def wait_for(self, slurm, number, is_so):
        job = slurm.wait_for_job(number, is_so, ENOUGH_SECONDS)
        self.assertTrue(is_so(job) or job.get("JobState") in slurm_cluster.ENDED,
                        self.told(slurm, job))
        return job

    def told(self, slurm, job):
        said = self.folder / "job.out"
        return f"{job}\n{said.read_text() if said.exists() else ''}\n{slurm.logs()}"

    def test_srun_starts_the_ranks(self):
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\nexec onebit launch --with srun --max-restarts 0 -- pretrain "
                          "--recipe $RECIPE --data $DATA --output $OUTPUT --set run.steps=20\n")
        with slurm_cluster.SlurmCluster(2) as slurm:
            if "pmix" not in slurm.ask("srun", "--mpi=list").stdout:
                self.skipTest("this Slurm is built without PMIx")
            number = slurm.submit(script, "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1",
                                  "--output=job.out", cwd=self.folder, env=self.variables("srun"))
            job = self.wait_for(slurm, number, lambda job: False)
            told = self.told(slurm, job)
            self.assertEqual((job["JobState"], job["ExitCode"]), ("COMPLETED", "0:0"), told)
            self.assertIn("2 ranks on 2 hosts (Slurm job", told)
            self.assertIn("started by srun", told)
            run = RunFolder(self.folder / "srun")
            self.addCleanup(run.remove_scratch)
            self.assertEqual(len(run.steps()), 20)
            self.assertEqual(run.left_over(), [])
            log = (run.folder / "logs/attempt-1/launcher.log").read_text()
            for rank in range(2):
                self.assertIn(f"rank {rank} on host{rank}: status 0", log)

    def test_a_job_that_reaches_its_time_limit_goes_on(self):
        with slurm_cluster.SlurmCluster(2, LINK) as slurm:
            number = slurm.submit(SCRIPT, "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1",
                                  "--time=30", SIGNAL, "--output=job.out", cwd=self.folder,
                                  env=self.variables("run"))
            run = RunFolder(self.folder / "run")
            self.addCleanup(run.remove_scratch)
            self.wait_for(slurm, number, lambda job: run.step() >= 10)
            slurm.change(number, "TimeLimit=1")
            self.wait_for(slurm, number, lambda job: int(job.get("Restarts", 0)) >= 1)
            slurm.change(number, "TimeLimit=30")
            slurm.free_links()
            job = self.wait_for(slurm, number, lambda job: False)
            told = self.told(slurm, job)
            self.assertEqual((job["JobState"], job["ExitCode"], job["Restarts"]),
                             ("COMPLETED", "0:0", "1"), told)
            said = (self.folder / "job.out").read_text()
            self.assertIn("2 ranks on 2 hosts (Slurm job", said)
            saved = re.search(r"asked to end and has saved step (\d+)", said)
            self.assertIsNotNone(saved, told)
            self.assertIn(f"resumed from global_step{saved[1]}", said)
            self.assertLess(int(saved[1]), RUN["steps"])
            self.assertEqual([step["step"] for step in run.steps()],
                             list(range(1, RUN["steps"] + 1)))
            self.assertEqual(run.left_over(), [])
            for attempt in (1, 2):
                logs = run.folder / f"logs/attempt-{attempt}/launcher.log"
                for rank in range(2):
                    self.assertIn(f"rank {rank} on host{rank}: status 0", logs.read_text())
        here = LaunchedRun(PROGRAM, self.folder, "here",
                           ["--hosts", "localhost:2", "--bind", "none", "--threads", "1"])
        self.addCleanup(here.close)
        self.assertEqual(here.wait(), 0, here.text())
        self.assertEqual(run.model(), here.model())


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv[1])
    launched_hosts.network_lab.end_on_signals()
    try:
        with slurm_cluster.SlurmCluster(1):
            pass
    except slurm_cluster.CannotRun as error:
        print(f"skipped: {error}")
        sys.exit(launched_hosts.network_lab.CANNOT)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
