"""Small runs of `onebit launch`, for the tests of the launcher and the injection of faults: data
and recipe, the launcher's process, its ranks, and leftovers."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ENOUGH_SECONDS = 1200
RECIPE = {
    "train_batch_size": 16,
    "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 60}},
    "model": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
              "intermediate_size": 128, "max_position_embeddings": 32},
    "data": {"sequence_length": 32, "max_predictions_per_sequence": 4},
    "run": {"steps": 240, "checkpoint_every": 20, "bucket_mb": 0.25},
}


def prepare(program, folder, steps=None, **run):
    """Writes the token store `corpus` and `recipe.json`. `run` changes keys of that section."""
    text = "".join(f"the {word} was here {line}\n" + "\n" * (line == 7)
                   for word in ("king", "bird", "river", "child", "stone", "cloud")
                   for line in range(8))
    (folder / "text.txt").write_text(text)
    recipe = json.loads(json.dumps(RECIPE))
    recipe["run"].update(run if steps is None else {"steps": steps, **run})
    (folder / "recipe.json").write_text(json.dumps(recipe))
    subprocess.run([program, "prepare", "--input", folder / "text.txt", "--output",
                    folder / "corpus", "--vocab-size", "80", "--format", "lines"],
                   check=True, capture_output=True)


class FolderTest(unittest.TestCase):
    """Base class whose tests share a folder with data and a recipe."""

    program = None

    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.folder = pathlib.Path(place.name)
        prepare(cls.program, cls.folder)


def run_tests():
    """The main program of a test file: ONEBIT [TEST...]."""
    FolderTest.program = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])


def training(folder, output, *more):
    return ["pretrain", "--recipe", str(folder / "recipe.json"), "--data", str(folder / "corpus"),
            "--output", str(folder / output), "--device", "cpu", *more]


def environment_of(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(word.split("=", 1) for word in words.split("\0") if "=" in word)


def processes():
    return [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")]


class RunFolder:
    """The files of a launched run, and its processes."""

    def __init__(self, folder):
        self.folder = folder
        self.records = folder  # the folder of rank 0

    def step(self):
        """Returns the step of the last update in metrics.jsonl, or 0 before the first."""
        steps = self.steps()
        return steps[-1]["step"] if steps else 0

    def steps(self):
        try:
            lines = (self.records / "metrics.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue  # the line is not complete yet
            if record["kind"] == "step":
                found.append(record)
        return found

    def ids(self):
        """Returns the ids of all attempts so far."""
        found = []
        for log in sorted(self.folder.glob("logs/attempt-*/launcher.log")):
            found += re.findall(r"^launch ([0-9a-f]+-\d+)\n", log.read_text())
        return found

    def pids(self, ids=None):
        """Returns {pid: rank or None} of the attempts' processes."""
        ids = self.ids() if ids is None else ids
        found = {}
        for pid in processes():
            own = environment_of(pid)
            if own.get("ONEBIT_LAUNCH_ID") in ids:
                found[pid] = int(own["ONEBIT_RANK"]) if "ONEBIT_RANK" in own else None
        return found

    def left_over(self, patience=15, half_written=True):
        """Returns processes, temporary folders and half-written files that remain after some time.
        A run that was killed and not restarted may leave an incomplete checkpoint: its test passes
        half_written=False."""
        until = time.monotonic() + patience
        while True:
            ids = self.ids()
            found = [f"process {pid} {environment_of(pid).get('ONEBIT_RANK')}"
                     for pid in self.pids(ids)]
            for pid in processes():
                try:
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                except (OSError, UnicodeDecodeError):
                    continue
                if "watch" in words and any(one in words for one in ids):
                    found.append(f"process {pid} {words}")
            found += [f"/dev/shm/onebit-{one}" for one in ids
                      if os.path.exists(f"/dev/shm/onebit-{one}")]
            if half_written:
                found += [str(path) for path in self.folder.glob("*.partial")]
            if not found or time.monotonic() > until:
                return found
            time.sleep(0.1)

    def remove_scratch(self):
        """Removes the temporary folders of attempts that a test has interrupted."""
        for one in self.ids():
            shutil.rmtree(f"/dev/shm/onebit-{one}", ignore_errors=True)

    def model(self):
        tag = (self.records / "latest").read_text().strip()
        return (self.records / tag / "model/model.safetensors").read_bytes()


class LaunchedRun(RunFolder):
    """A launcher that runs in the background, and its run."""

    def __init__(self, program, folder, output, options, more=(), before=()):
        super().__init__(folder / output)
        self.terminal = folder / f"{output.replace('/', '-')}.terminal"
        self.file = open(self.terminal, "a", encoding="utf-8")
        self.process = subprocess.Popen(
            [*before, str(program), "launch", *map(str, options), "--",
             *training(folder, output, *more)],
            stdin=subprocess.DEVNULL, stdout=self.file, stderr=self.file, cwd=folder)

    def wait(self, timeout=ENOUGH_SECONDS):
        try:
            return self.process.wait(timeout)
        finally:
            self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.file.close()

    def text(self):
        return self.terminal.read_text(encoding="utf-8")

    def reach(self, step, timeout=ENOUGH_SECONDS):
        until = time.monotonic() + timeout
        while self.step() < step:
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"step {step} was not reached:\n{self.text()}")
            time.sleep(0.01)

    def rank_pid(self, rank, timeout=ENOUGH_SECONDS):
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            own = [pid for pid, one in self.pids(self.ids()[-1:]).items() if one == rank]
            if own:
                return own[0]
            time.sleep(0.02)
        raise AssertionError(f"no process of rank {rank}:\n{self.text()}")

    def guard_pid(self, rank):
        """Returns the pid of the parent of the rank's process."""
        status = pathlib.Path(f"/proc/{self.rank_pid(rank)}/status").read_text()
        return int(re.search(r"^PPid:\t(\d+)$", status, re.MULTILINE)[1])

    def starter_pid(self):
        """Returns the pid of mpirun."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in map(int, children.read_text().split()):
            name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            if name in ("mpirun", "orterun", "prterun"):  # of Open MPI 4, 4 and 5
                return pid
        raise AssertionError("mpirun is not running")
