"""What wheels must be: their check finds each mistake, ICU's data is cut and stays readable, and the
list of libraries is complete."""
import contextlib
import io
import re
import struct
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/wheel"), str(ROOT / "tools/wheel/icu")]
import check_wheel  # noqa: E402
import cut_icu_data  # noqa: E402


def elf_that_needs(*libraries):
    """A 64-bit ELF file with a dynamic section and its names, and nothing else."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in libraries)
    entries, at = b"", 1
    for name in libraries:
        entries += struct.pack("<QQ", 1, at)
        at += len(name) + 1
    sections = (struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
                + struct.pack("<IIQQQQIIQQ", 0, 6, 0, 0, 64 + len(names), len(entries), 0, 0, 8, 16))
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", header, 0x28, 64 + len(names) + len(entries))
    struct.pack_into("<HH", header, 0x3A, 64, 2)
    return bytes(header) + names + entries + sections


class Wheels(unittest.TestCase):
    TAG = "onebit-1.0-cp312-abi3-manylinux_2_34_x86_64.whl"

    def problems(self, files, name=TAG):
        files = dict.fromkeys(check_wheel.needed_files(), b"") | files
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            with zipfile.ZipFile(path, "w") as wheel:
                for file, contents in files.items():
                    wheel.writestr(file, contents)
            with contextlib.redirect_stdout(io.StringIO()):
                return check_wheel.problems_of(path)

    def test_a_wheel_needs_the_c_library_alone(self):
        alone = elf_that_needs("libm.so.6", "libc.so.6")
        self.assertEqual(self.problems({"onebit/_core.abi3.so": alone}), [])
        self.assertEqual(self.problems({"onebit/_core.abi3.so": elf_that_needs("libgomp.so.1")}),
                         ["onebit/_core.abi3.so needs libgomp.so.1 of the machine"])

    def test_only_the_plugin_may_need_mpi(self):
        needs_mpi = elf_that_needs("libmpi.so.40", "libc.so.6")
        self.assertEqual(self.problems({"onebit/bin/libonebit_mpi.so": needs_mpi}), [])
        self.assertIn("libmpi.so.40", self.problems({"onebit/bin/onebit": needs_mpi})[0])

    def test_the_program_and_all_licences_are_inside(self):
        needed = check_wheel.needed_files()
        self.assertLessEqual({"onebit/bin/onebit", "onebit/licenses/onednn.txt"}, needed)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = Path(folder) / self.TAG
            with zipfile.ZipFile(path, "w") as wheel:
                wheel.writestr("onebit/_core.abi3.so", b"")
            self.assertEqual(len(check_wheel.problems_of(path)), len(needed) - 1)

    def test_a_library_inside(self):
        self.assertIn("libcurl", self.problems({"onebit.libs/libcurl-1.so": b""})[0])

    def test_a_tag_for_newer_systems(self):
        newer = self.TAG.replace("2_34", "2_36")
        self.assertIn("manylinux_2_34", self.problems({"onebit/x": b""}, newer)[0])
        both = self.TAG.replace("manylinux_2_34", "manylinux_2_36_x86_64.manylinux_2_28")
        self.assertEqual(self.problems({"onebit/x": b""}, both), [])

    def test_the_size(self):
        self.assertIn("at most", self.problems({"x": b"0" * 60_000_001})[0])


class IcuData(unittest.TestCase):
    def test_items_that_are_kept_are_the_same(self):
        header = struct.pack("<H", 32) + b"\xda\x27" + bytes(8) + b"CmnD" + bytes(16)
        items = [(f"icudt99l/{name}", name.encode() * 5) for name in
                 ["brkitr/de.res", "brkitr/line.brk", "curr/de.res", "nfkc.nrm", "nfkc_cf.nrm",
                  "res_index.res", "root.res"]]
        read_header, read = cut_icu_data.read_entries(cut_icu_data.write_entries(header, items))
        self.assertEqual(read_header, header)
        self.assertEqual([(name, item.rstrip(b"\0")) for name, item in read], items)
        kept = [name for name, _ in items if cut_icu_data.KEPT.fullmatch(name.partition("/")[2])]
        self.assertEqual(kept, ["icudt99l/brkitr/de.res", "icudt99l/nfkc.nrm",
                                "icudt99l/res_index.res", "icudt99l/root.res"])


class Libraries(unittest.TestCase):
    BUILDER = ROOT / "tools/wheel/build_libraries.sh"

    def test_every_library_is_listed_with_its_hash_and_built(self):
        lines = [line.split() for line in (ROOT / "tools/wheel/libraries.txt").read_text()
                 .splitlines() if not line.startswith("#")]
        for name, path, sha256 in lines:
            self.assertRegex(path, r"^pool/main/\S+\.tar\.(gz|xz|bz2)$")
            self.assertRegex(sha256, r"^[0-9a-f]{64}$")
        built = re.search(r"^for library in (.*); do$", self.BUILDER.read_text(), re.MULTILINE)
        self.assertEqual({name for name, _, _ in lines}, set(built[1].split()))
        self.assertEqual(check_wheel.inside_libraries(), set(built[1].split()))

    def test_no_library_of_networks_or_of_mpi_is_inside(self):
        for name in check_wheel.inside_libraries():
            self.assertNotRegex(name, "ssl|curl|krb5|ldap|gnutls|mpi|gomp|xml")

    def test_older_systems_and_both_kinds_of_processors_are_described(self):
        project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())
        wheels = project["tool"]["cibuildwheel"]
        self.assertEqual({name.rpartition("_")[2] for name in wheels["build"]}, {"64", "aarch64"})
        self.assertIn("tools/wheel/build_libraries.sh", wheels["before-all"])
        libraries = wheels["config-settings"]["cmake.define.ONEBIT_STATIC_LIBRARIES"]
        self.assertIn(libraries.removesuffix("/installed") + " ", wheels["before-all"])

    def test_a_file_with_other_contents_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "mirror/pool/main/z/zlib"
            archive.mkdir(parents=True)
            names = [line.split()[1] for line in (ROOT / "tools/wheel/libraries.txt").read_text()
                     .splitlines() if line.startswith("zlib ")]
            for name in names:
                (Path(folder) / "mirror" / name).write_text("something else")
            done = subprocess.run([str(self.BUILDER), f"{folder}/built", f"file://{folder}/mirror"],
                                  capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("is not the file that libraries.txt names", done.stderr)


if __name__ == "__main__":
    unittest.main()
