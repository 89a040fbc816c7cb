"""Tests of the tools that compile sources: units of several sources, clang-tidy over them, and
sources that compile alone."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_includes  # noqa: E402
import run_clang_tidy  # noqa: E402
import source_units  # noqa: E402


class ClangTidy(unittest.TestCase):
    """Sources that are checked together, by a replacement of clang-tidy."""

    def check(self, *lines):
        """Returns (the reported findings of two sources, the number of clang-tidy's runs)."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            program = root / "clang-tidy"
            program.write_text("\n".join(["#!/bin/sh", f"echo run >> {root}/runs", *lines, ""]))
            program.chmod(0o755)
            path = os.environ["PATH"]
            os.environ["PATH"] = f"{root}:{path}"
            try:
                text = run_clang_tidy.Tidy(str(root)).check("unit.cc", ["a.cc", "b.cc"])
            finally:
                os.environ["PATH"] = path
            return text, len((root / "runs").read_text().split())

    def test_nothing_found(self):
        self.assertEqual(self.check("exit 0"), ("", 1))

    def test_a_finding_of_the_unit(self):
        text, runs = self.check("echo 'a.cc:1:1: error: x [modernize-use-nullptr,-warnings-as-errors]'",
                                "exit 1")
        self.assertIn("modernize-use-nullptr", text)
        self.assertEqual(runs, 1)

    def test_what_does_not_compile_together_is_checked_alone(self):
        text, runs = self.check("case \"$*\" in *unit.cc) ;; *) exit 0 ;; esac",
                                "echo 'error: redefinition [clang-diagnostic-error]'", "exit 1")
        self.assertEqual((text, runs), ("", 3))

    def test_a_crash_is_no_success(self):
        text, runs = self.check("echo crashed >&2", "exit 139")
        self.assertIn("a.cc: clang-tidy failed\ncrashed", text)
        self.assertEqual(runs, 3)


class Units(unittest.TestCase):
    """Sources that can be compiled as one translation unit."""

    def test_names_of_unnamed_namespaces(self):
        self.assertEqual(
            source_units.local_names("#define TWICE 2\nnamespace {\n\nconstexpr int kMost = 2;\n"
                                     "constexpr double kFirst = 1, kSecond = 2,\n"
                                     "                 kThird = 3;\n"
                                     "struct Part {\n  int size = 0;\n};\n"
                                     "std::string name_of(int part) {\n  int k = kMost;\n}\n\n"
                                     "}  // namespace\n\nint outside() {\n"),
            {"TWICE", "kMost", "kFirst", "kSecond", "kThird", "Part", "name_of"})

    def units(self, most=8, separate=False, **texts):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "floor"
            folder.mkdir()
            for name, text in texts.items():
                (folder / name.replace("_h", ".h").replace("_cc", ".cc")).write_text(text)
            sources = sorted(map(str, folder.glob("*.cc")))
            return [[Path(source).stem for source in unit]
                    for unit in source_units.units_of(sources, most, separate=separate)]

    def test_a_name_stands_in_a_unit_once(self):
        local = "namespace {\n\nint count() {\n}\n\n}  // namespace\n"
        self.assertEqual(self.units(a_cc=local, b_cc=local, c_cc="int three() {\n}\n"),
                         [["a", "c"], ["b"]])
        # Nor with a source that includes the same name from a header, directly or indirectly.
        self.assertEqual(self.units(a_cc=local, b_cc='#include "x/floor/b.h"\n',
                                    b_h='#include "x/floor/c.h"\n',
                                    c_h="inline int count() {\n}\n"), [["a"], ["b"]])

    def test_units_have_a_size_and_leave_highway_alone(self):
        plain = {f"{letter}_cc": "int one;\n" for letter in "abcde"}
        self.assertEqual(self.units(2, **plain), [["a", "b"], ["c", "d"], ["e"]])
        self.assertEqual(self.units(a_cc="#define HWY_TARGET_INCLUDE\n", b_cc="int two;\n"),
                         [["a"], ["b"]])

    def test_tests_may_have_equal_names(self):
        local = "namespace onebit {\nnamespace {\n\nint count() {\n}\n\n}  // namespace\n}  // namespace onebit\n"
        open_ended = local.replace("}  // namespace onebit", "int all() {\n}\n\n}  // namespace onebit")
        self.assertEqual(self.units(separate=True, a_cc=local, b_cc=local), [["a", "b"]])
        self.assertEqual(self.units(separate=True, a_cc=local, b_cc="#define TWICE\n" + local,
                                    c_cc="#define TWICE\n" + local), [["a", "b"], ["c"]])
        self.assertEqual(self.units(separate=True, a_cc=open_ended, b_cc=open_ended), [["a"], ["b"]])
        self.assertEqual(self.units(a_cc=local, b_cc=local), [["a"], ["b"]])

    def test_a_unit_of_tests_names_their_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            sources = [Path(folder, name) for name in ("a_test.cc", "b_test.cc")]
            for source in sources:
                source.write_text("namespace onebit {\nnamespace {\n\nint one;\n\n}  // namespace\n}  // namespace onebit\n")
            with mock.patch.object(source_units, "ROOT", Path(folder).resolve()):
                text = source_units.text_of_unit(sources, separate=True)
        self.assertEqual(text, "".join(
            f'#line 1 "{name}.cc"\nnamespace onebit {{\nnamespace in_{name} {{ namespace {{\n\nint one;\n\n'
            f"}} }}  // namespace\n}}  // namespace onebit\n" for name in ("a_test", "b_test")))


class Includes(unittest.TestCase):
    def test_source_that_does_not_name_its_header_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "good.cc").write_text("#include <vector>\nstd::vector<int> a;\n")
            (root / "bad.cc").write_text("std::vector<int> b;\n")
            (root / "compile_commands.json").write_text(json.dumps([
                {"directory": folder, "file": f"{folder}/{name}.cc",
                 "command": f"env ccache c++ -Wall -o {name}.o -c {folder}/{name}.cc"}
                for name in ("good", "bad")]))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), \
                    mock.patch.object(check_includes, "ROOT", root):
                good = check_includes.main([folder, "good.cc"])
                both = check_includes.main([folder, "good.cc", "bad.cc"])
        self.assertEqual((good, both), (0, 1))
        self.assertIn("bad.cc does not compile alone:", printed.getvalue())
        self.assertIn("2 sources compiled alone, 1 failed", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
