"""gpu_check.py runs every part, whatever the programs do, and names what to look at first."""
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import gpu_check  # noqa: E402

PASSES = "echo '[       OK ] Linear.Cuda (3 ms)'"
ROWS = [{"name": "copy", "milliseconds": 1, "share": 1.0, "bound": "a copy"},
        {"name": "gelu", "milliseconds": 2, "share": 0.4, "bound": "a copy"}]


def write_program(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(0o755)


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.programs = self.folder / "programs"
        self.programs.mkdir()
        for name in gpu_check.TESTS:
            write_program(self.programs, f"test_{name}", PASSES)
        write_program(self.programs, "cuda_products_bench", "echo products")
        write_program(self.programs, "cuda_bench", f"echo rows; echo '{json.dumps(ROWS)}' > $2")

    def check(self, *options, device="a GPU"):
        """Returns (exit status, printed text, gpu-check.json) without sanitizers and PyTorch."""
        printed, results = io.StringIO(), self.folder / "results"
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(gpu_check, "gpu", lambda: device):
            status = gpu_check.main(["--programs", str(self.programs), "--results", str(results),
                                     "--no-sanitizer", "--no-compare", *options])
        return status, printed.getvalue(), json.loads((results / "gpu-check.json").read_text())

    def test_all_pass(self):
        status, printed, written = self.check()
        self.assertEqual(status, 0, printed)
        self.assertEqual([p["name"] for p in written["parts"]],
                         [f"tests {name}" for name in gpu_check.TESTS] + ["matrix products", "bench"])
        self.assertEqual({p["passed"] for p in written["parts"][:len(gpu_check.TESTS)]}, {1})
        self.assertEqual(written["kernels"], ROWS)
        self.assertIn("furthest from its bound: gelu, 40 % of a copy", printed)

    def test_without_a_gpu_nothing_is_said_to_be_good(self):
        _, printed, written = self.check(device="")
        self.assertIn("nothing was tested: there is no NVIDIA driver here", printed)
        self.assertNotIn("nothing failed", written["look_first"])

    def test_failed_program_is_run_by_suites_and_the_rest_goes_on(self):
        write_program(self.programs, "test_ops", """case "$1" in
          --gtest_list_tests) printf 'Devices/Linear.\\n  Cuda\\nNorm.\\n  Cuda\\n' ;;
          *Devices/Linear*) echo '/x/linear_test.cc:7: Failure'; echo '  wanted 1'
            echo '[  FAILED  ] Devices/Linear.Cuda, where x (3 ms)'; exit 1 ;;
          *Norm*) echo '[       OK ] Norm.Cuda (3 ms)' ;;
          *) echo '[  FAILED  ] Devices/Linear.Cuda (1 ms)'; kill -SEGV $$ ;;
          esac""")
        status, printed, written = self.check()
        self.assertEqual(status, 1)
        results = {p["name"]: p["result"] for p in written["parts"]}
        self.assertEqual(results["tests ops"], "crashed")
        self.assertEqual(results["tests ops, Devices/Linear alone"], "failed")
        self.assertEqual(results["tests ops, Norm alone"], "passed")
        self.assertEqual(results["bench"], "passed")
        self.assertIn("look first at Devices/Linear.Cuda (failed; tests-ops-Devices-Linear-alone.log): "
                      "/x/linear_test.cc:7: Failure wanted 1", printed)

    def test_program_that_hangs_is_killed(self):
        write_program(self.programs, "test_comm",
                      "[ \"$1\" = --gtest_list_tests ] || { echo waiting; sleep 100; }")
        with mock.patch.object(gpu_check, "TEST_LIMIT", 1):
            status, printed, written = self.check("--no-bench")
        self.assertEqual(status, 1)
        self.assertEqual([p["result"] for p in written["parts"]].count("killed"), 1)
        self.assertIn("look first at tests comm (killed; tests-comm.log): not done after 1 s", printed)

    def test_program_that_is_absent(self):
        (self.programs / "test_model").unlink()
        (self.programs / "cuda_bench").unlink()
        status, _, written = self.check()
        self.assertEqual(status, 1)
        self.assertEqual([p["name"] for p in written["parts"] if p["result"] == "absent"],
                         ["tests model", "bench"])

    def test_command_of_the_checkout_runs_every_part(self):
        """./run gpu-check runs every part, although its shell ends at the first failing command."""
        root = Path(__file__).resolve().parents[2]
        (self.folder / "tools").symlink_to(root / "tools")
        benches = self.folder / "build/bench"
        benches.mkdir(parents=True)
        for name in gpu_check.TESTS:
            tests = self.folder / "build/tests" / name
            tests.mkdir(parents=True)
            (self.programs / f"test_{name}").rename(tests / f"test_{name}")
        for program in self.programs.iterdir():
            program.rename(benches / program.name)
        results = self.folder / "build/gpu-check/gpu-check.json"
        for ops, expected in ((PASSES, "passed"), ("exit 1", "failed")):
            results.unlink(missing_ok=True)
            write_program(self.folder / "build/tests/ops", "test_ops", ops)
            done = subprocess.run(
                ["bash", "-c", f"set -euo pipefail; source {root}/tools/shell/base.sh; "
                 f"source {root}/tools/shell/bundle.sh; install_packages() {{ :; }}; "
                 "configure() { :; }; build() { :; }; run_gpu_check --no-sanitizer --no-compare"],
                cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode == 0, expected == "passed", done.stdout + done.stderr)
            parts = {p["name"]: p["result"] for p in json.loads(results.read_text())["parts"]}
            self.assertEqual(parts["tests ops"], expected)
            self.assertLessEqual({f"tests {name}" for name in gpu_check.TESTS} | {"bench"},
                                 parts.keys())


if __name__ == "__main__":
    unittest.main()
