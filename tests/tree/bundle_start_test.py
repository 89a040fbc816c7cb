"""The bundle's starter finds the machine's CUDA libraries, or reports which are missing. It and
./run work through links. A loader that prints its arguments replaces the C library's."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STARTER = ROOT / "tools" / "shell" / "bundle_start.sh"
LIBRARY = "libcublasLt.so.99"  # a version that no machine has


class BundleStart(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.bundle = self.folder / "bundle"
        for name in ("lib/runtime", "bin"):
            (self.bundle / name).mkdir(parents=True)
        shutil.copy(STARTER, self.bundle / "start")
        (self.bundle / "lib/cuda-libraries").write_text(LIBRARY + "\n")
        self.set_bundled_libc("glibc 99.0", self.bundle / "lib/runtime/ld-linux-x86-64.so.2")

    def set_bundled_libc(self, version, loader):
        (self.bundle / "lib/runtime/version").write_text(version + "\n")
        loader.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "$GOMP_SPINCOUNT" "$ONEBIT_PROGRAM" '
                          '"devices: ${CUDA_VISIBLE_DEVICES-all}"\n')
        loader.chmod(0o755)

    def start(self, **variables):
        """Returns (folders of libraries, the other printed lines, messages)."""
        given = {"PATH": os.environ["PATH"], "ONEBIT_BUNDLE_VERBOSE": "1", **variables}
        done = subprocess.run([str(self.bundle / "start"), "program", "--flag"], env=given, text=True,
                              capture_output=True, check=True)
        flag, libraries, *others = done.stdout.splitlines()
        self.assertEqual(flag, "--library-path")
        return libraries.split(":"), others, done.stderr

    def test_through_a_link(self):
        link = self.folder / "link"
        link.symlink_to(self.bundle / "start")
        done = subprocess.run([str(link), "program"], text=True, capture_output=True, check=True)
        self.assertIn(f"{self.bundle}/bin/program", done.stdout)

    def test_programs_of_the_bundle_through_links(self):
        (self.bundle / "check").mkdir()
        subprocess.run(["bash", "-euc", 'source tools/shell/bundle.sh; GPU_TESTS=(ops); '
                        'write_starters "$0"', str(self.bundle)], cwd=ROOT, check=True)
        for name, program in ("onebit", "onebit"), ("check/test_ops", "test_ops"):
            link = self.folder / f"a link to {program}"
            link.symlink_to(self.bundle / name)
            done = subprocess.run([str(link)], text=True, capture_output=True, check=True)
            self.assertIn(f"{self.bundle}/bin/{program}", done.stdout)

    def test_run_through_a_link(self):
        link = self.folder / "link"
        link.symlink_to(ROOT / "run")
        done = subprocess.run([str(link), "help"], text=True, capture_output=True, cwd=self.folder,
                              check=True)
        self.assertIn("Usage: ./run", done.stdout)

    def library_in(self, *parts):
        place = self.folder.joinpath(*parts)
        place.mkdir(parents=True)
        (place / LIBRARY).touch()
        return place

    def test_program_arguments_and_environment(self):
        folders, others, _ = self.start()
        self.assertEqual(others, [f"{self.bundle}/bin/program", "--flag", "2000",
                                  f"{self.bundle}/onebit", "devices: "])
        self.assertEqual(folders[:2], [f"{self.bundle}/lib/runtime", f"{self.bundle}/lib"])

    def test_missing_library_is_named(self):
        _, _, messages = self.start()
        self.assertIn(f"{LIBRARY} not found, so CUDA cannot be used", messages)
        self.assertIn("LD_LIBRARY_PATH", messages)

    def test_missing_nccl_leaves_the_devices(self):
        (self.bundle / "lib/cuda-libraries").write_text("libnccl.so.99\n")
        _, others, messages = self.start()
        self.assertEqual(others[-1], "devices: all")
        self.assertIn("libnccl.so.99 not found, so NCCL cannot be used", messages)

    def test_library_in_the_given_path(self):
        place = self.library_in("cuda")
        folders, others, messages = self.start(LD_LIBRARY_PATH=str(place))
        self.assertIn(str(place), folders)
        self.assertEqual(others[-1], "devices: all")
        self.assertEqual(messages, "")

    def test_library_of_a_cuda_home(self):
        place = self.library_in("toolkit", "lib64")
        folders, _, messages = self.start(CUDA_HOME=str(place.parent))
        self.assertIn(str(place), folders)
        self.assertEqual(messages, "")

    def test_library_of_a_python_package(self):
        place = self.library_in("site", "nvidia", "cu99", "lib")
        folders, _, messages = self.start(PYTHONPATH=str(self.folder / "site"))
        self.assertIn(str(place), folders)
        self.assertEqual(messages, "")

    def test_newer_c_library_of_the_machine_is_used(self):
        (self.bundle / "lib/runtime/version").write_text("glibc 2.1\n")
        shutil.copy("/bin/true", self.bundle / "bin/program")
        done = subprocess.run([str(self.bundle / "start"), "program"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
