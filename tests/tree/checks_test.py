"""The checks of the tree report every kind of violation, which tests plant in a small tree."""
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
import check_case_lists  # noqa: E402
import check_floors  # noqa: E402
import check_includes  # noqa: E402
import check_layout  # noqa: E402
import check_links  # noqa: E402
import run_clang_tidy  # noqa: E402
import source_units  # noqa: E402
from cpp_source import functions  # noqa: E402


def output_of(check, files):
    """Returns (exit status, printed text) of a check over a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = check.main(root)
        return status, printed.getvalue()


def with_table(files, **floors):
    """Adds the table of floors and their CMakeLists.txt to a tree; floors: {floor: may include}."""
    table = {"base": "nothing", "comm": "nothing", "engine": "nothing", "model": "nothing",
             "ops": "nothing"} | floors
    rows = "".join(f"| `{floor}` | what it is | {below} |\n" for floor, below in table.items())
    tree = {"onebit/README.md": "| floor | | |\n|---|---|---|\n" + rows}
    for floor, below in table.items():
        linked = "" if below == "nothing" else f" DEPENDS {below}"
        tree[f"onebit/{floor}/CMakeLists.txt"] = f"onebit_floor({floor} SOURCES a.cc{linked})\n"
    return tree | files


class Floors(unittest.TestCase):
    def breach(self, files, expected, **floors):
        status, printed = output_of(check_floors, with_table(files, **floors))
        self.assertEqual(status, 1, printed)
        self.assertIn(expected, printed)

    def test_good_tree_passes(self):
        status, printed = output_of(check_floors, with_table({
            "onebit/base/a.h": "#pragma once\n#include <vector>\n",
            "onebit/ops/b.cc": '// #include "onebit/model/x.h"\n#include "onebit/base/a.h"\n'},
            ops="base"))
        self.assertEqual(status, 0, printed)

    def test_table_names_more_than_is_included(self):
        self.breach({"onebit/ops/b.cc": ""}, "no file of floor ops includes base", ops="base")

    def test_cmake_links_something_else(self):
        self.breach({"onebit/base/a.h": "#pragma once\n",
                     "onebit/ops/b.cc": '#include "onebit/base/a.h"\n',
                     "onebit/ops/CMakeLists.txt": "onebit_floor(ops DEPENDS base comm)\n"},
                    "onebit/ops/CMakeLists.txt:1: DEPENDS is base comm", ops="base")

    def test_upward_include(self):
        self.breach({"onebit/base/a.h": '#pragma once\n#include "onebit/ops/b.h"\n',
                     "onebit/ops/b.h": "#pragma once\n"}, "onebit/base/a.h:2: floor base")

    def test_sideways_include(self):
        self.breach({"onebit/engine/a.cc": '#include "onebit/model/b.h"\n',
                     "onebit/model/b.h": "#pragma once\n"}, "onebit/engine/a.cc:1: floor engine")

    def test_short_path(self):
        self.breach({"onebit/base/a.cc": '#include "b.h"\n', "onebit/base/b.h": ""},
                    "give the path from the repository root")

    def test_missing_file(self):
        self.breach({"onebit/base/a.cc": '\n#include "onebit/base/b.h"\n'},
                    "onebit/base/a.cc:2: \"onebit/base/b.h\": there is no such file")

    def test_include_of_tests(self):
        self.breach({"onebit/base/a.cc": '#include "tests/base/b.h"\n', "tests/base/b.h": ""},
                    "outside onebit/")

    def test_unknown_floor(self):
        self.breach({"onebit/attic/a.cc": ""}, "is on no floor")

    def test_vendor_headers_elsewhere(self):
        for header in ("dnnl.hpp", "mpi.h", "cuda_runtime.h", "nccl.h", "omp.h"):
            self.breach({"onebit/engine/a.cc": f"#include <{header}>\n"},
                        f"onebit/engine/a.cc:1: includes {header}")

    def test_vendor_headers_where_they_belong(self):
        status, printed = output_of(check_floors, with_table({
            "onebit/ops/matmul_cpu.cc": "#include <dnnl.hpp>\n",
            "onebit/comm/mpi_transport.cc": "#include <mpi.h>\n",
            "onebit/ops/matmul_cuda.cu": "#include <cuda_runtime.h>\n"}))
        self.assertEqual(status, 0, printed)

    def test_cycle(self):
        self.breach({"onebit/base/a.h": '#include "onebit/base/b.h"\n',
                     "onebit/base/b.h": '#include "onebit/base/a.h"\n'}, "include cycle")

    def test_floors_that_include_each_other(self):
        self.breach({"onebit/ops/a.h": '#include "onebit/comm/b.h"\n',
                     "onebit/comm/b.h": "",
                     "onebit/comm/c.cc": '#include "onebit/model/d.h"\n',
                     "onebit/model/d.h": "",
                     "onebit/model/e.cc": '#include "onebit/ops/f.h"\n',
                     "onebit/ops/f.h": ""},
                    "floor ops may include comm, which may include ops in turn",
                    ops="comm", comm="model", model="ops")

    def test_floor_that_the_picture_lacks(self):
        self.breach({"onebit/base/a.cc": "",
                     "docs/architecture.md": "```\nbase comm engine ops\n```\n"},
                    "docs/architecture.md:1: the picture of the floors has no model")


class Links(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        status, printed = output_of(check_links, {
            "README.md": "[a](docs/a.md#what-it-is) [b](docs/b.md)\n"
                         "[c](docs/a.md#more) [d](#other)\n",
            "docs/a.md": "# What it `is`\n\n[up](../README.md)\n```\n# more\n```\n"})
        self.assertEqual(status, 1, printed)
        self.assertIn("README.md:1: links to docs/b.md, which does not exist", printed)
        self.assertIn("README.md:2: links to #more: docs/a.md has no such heading", printed)
        self.assertIn("README.md:2: links to #other: README.md has no such heading", printed)
        self.assertIn("3 problems", printed)


class Layout(unittest.TestCase):
    def breach(self, name, text, expected):
        status, printed = output_of(check_layout, {name: text})
        self.assertEqual(status, 1, printed)
        self.assertIn(f"{name}:", printed)
        self.assertIn(expected, printed)

    def test_good_tree_passes(self):
        status, printed = output_of(check_layout, {
            "onebit/base/a.h": "// Contract.\n#pragma once\nint f();\n",
            "onebit/base/a.cc": "int f() {\n" + "  g();\n" * 58 + "}\n"})
        self.assertEqual(status, 0, printed)

    def test_long_files(self):
        self.breach("onebit/base/a.h", "#pragma once\n" * 201, "at most 200")
        self.breach("onebit/base/a.cc", "\n" * 401, "at most 400")

    def test_long_function(self):
        self.breach("onebit/base/a.cc", "int f() {\n" + "  g();\n" * 59 + "}\n", "f has 61 lines")
        arguments = "  g({.a = 1,\n" + "     .b = 2,\n" * 30 + "     .c = 3});\n"
        self.breach("onebit/base/a.cc", "int f() {\n" + arguments + "  g();\n" * 57 + "}\n",
                    "f has 61 lines")

    def test_names(self):
        for name in ("utils", "common", "string_helpers", "adam_new", "adam_v2"):
            self.breach(f"onebit/base/{name}.cc", "", "says nothing")
        self.breach("onebit/base/LayerNorm.cc", "", "snake_case")
        self.breach("onebit/base/deep/a.cc", "", "is deeper")

    def test_long_comment(self):
        self.breach("onebit/base/a.cc", "  // " + "a " * 48 + "\n", "a comment of 101 columns")

    def test_pragma_once(self):
        self.breach("onebit/base/a.h", "#ifndef A\n#define A\n#endif\n", "#pragma once")

    def test_option_in_code(self):
        self.breach("onebit/base/a.cc", "#ifdef ONEBIT_HAS_MPI\n#endif\n", "picks files")
        status, printed = output_of(check_layout, {
            "onebit/base/a_inl.h": "// Once a target.\n#if defined(A_INL_H_) == \\\n"
                                   "    defined(HWY_TARGET_TOGGLE)\n#define A_INL_H_\n#endif\n"})
        self.assertEqual(status, 0, printed)

    def test_macro_budget(self):
        self.breach("onebit/base/a.cc", "".join(f"#define M{i}\n" for i in range(11)), "at most 10")

    def test_words(self):
        self.breach("onebit/base/a.cc", "// TO" "DO later\n", "open mark")
        self.breach("docs/a.md", "see /" "home/me/x\n", "absolute path")
        self.breach("docs/a.md", "get it from https:/" "/packages.example/x\n", "LINK_HOSTS")

    def test_exact_power_in_a_kernel(self):
        self.breach("onebit/kernels/a_cuda.h", "#pragma once\nfloat y = exp2f(x);\n",
                    "approximate_exp2()")

    def test_calls_that_belong_to_one_place(self):
        for code, expected in (
                ("text = value->dump();", "dump: throws for bytes that are not UTF-8"),
                ("text = std::strerror(code);", "reason_of()"),
                ('require(::f() == 0,\n        "{}", reason_of(errno));', "a.cc:1: require: errno"),
                ('std::cerr << 1;', "show()"), ('fmt::print(stderr, "{}", t);', "show()")):
            self.breach("onebit/base/a.cc", code + "\n", expected)
        status, printed = output_of(check_layout, {
            "onebit/base/json.cc": "text = json.dump(2);\n",
            "onebit/base/b.cc": "// json.dump() throws\nconst int reason = errno;\nfail(reason);\n"})
        self.assertEqual(status, 0, printed)

    def test_op_family(self):
        status, printed = output_of(check_layout, {"onebit/ops/gelu_cpu.cc": ""})
        self.assertEqual(status, 1)
        for missing in ("onebit/ops/gelu.h", "onebit/ops/gelu.cc"):
            self.assertIn(f"{missing} is missing", printed)
        self.assertIn("tests/ops/gelu_test.cc is missing", printed)
        self.assertNotIn("gelu_cuda.cu is missing", printed)

    def test_op_family_may_have_several_operations_and_inner_pieces(self):
        status, printed = output_of(check_layout, {
            "onebit/ops/attention.h": "#pragma once\n", "onebit/ops/attention.cc": "",
            "onebit/ops/attention_cpu.cc": "", "onebit/ops/attention_backward_cpu.cc": "",
            "onebit/ops/attention_tile.h": "#pragma once\n",
            "tests/ops/attention_backward_test.cc": ""})
        self.assertEqual(status, 0, printed)

    def test_op_floor_holds_families_only(self):
        status, printed = output_of(check_layout, {"onebit/ops/simd_inl.h": "#pragma once\n"})
        self.assertEqual(status, 1)
        self.assertIn("onebit/ops/simd_inl.h:1: belongs to no op family", printed)

    def test_op_family_with_cuda(self):
        status, printed = output_of(check_layout, {"onebit/ops/gelu_cpu.cc": "",
                                                   "onebit/ops/copy_cuda.cu": ""})
        self.assertEqual(status, 1)
        self.assertIn("onebit/ops/gelu_cuda.cu is missing", printed)

    def test_mirror(self):
        self.breach("onebit/base/CMakeLists.txt", "", "there is no tests/base")
        self.breach("tests/attic/a_test.cc", "", "mirrors no floor")

    def test_tests_are_named_after_what_they_test(self):
        good = {"onebit/base/log.h": "#pragma once\n", "tests/base/log_test.cc": "",
                "tests/base/log_levels_test.cc": "", "tests/base/folder.h": "#pragma once\n"}
        status, printed = output_of(check_layout, good)
        self.assertEqual(status, 0, printed)
        for name in ("logs_test", "writer_test"):
            status, printed = output_of(check_layout, good | {f"tests/base/{name}.cc": ""})
            self.assertEqual(status, 1)
            self.assertIn(f"tests/base/{name}:1: is named after no file of onebit/base", printed)

    def test_every_header_of_the_text_floors_has_a_test(self):
        header = "#pragma once\n"
        files = {"onebit/squad/span_logits.h": header, "onebit/squad/answer_decoder.h": header,
                 "tests/squad/answer_decoder_test.cc": ""}
        printed = output_of(check_layout, files)[1]
        self.assertNotIn("there is no tests/squad", printed)
        files |= {"onebit/squad/dataset.h": header}
        self.assertIn("onebit/squad/dataset.h:1: there is no tests/squad/dataset_test.cc",
                      output_of(check_layout, files)[1])

    def test_names_of_exceptions_do_not_outlive_them(self):
        files = {"onebit/cli/log.h": "#pragma once\n", "tests/cli/log_test.cc": ""}
        self.assertIn("cli/program_test needs no exception", output_of(check_layout, files)[1])


class Functions(unittest.TestCase):
    def names(self, text):
        return [(name, last - first + 1) for first, last, name in functions(text)]

    def test_kinds_of_braces(self):
        text = """namespace a {
enum class E { kOne, kTwo };
struct S {
  S() : x_{1}, y_(2) {
    use("}{", '{');  // }
  }
  int get() const { return x_; }
  int x_{3};
};
constexpr int kTable[] = {1, 2};
template <typename T>
T f(T a,
    T b) {
  auto g = [&](int c) { return c; };
  if (a) {
    return g(b);
  }
}
extern "C" {
void h() {}
}
}
"""
        self.assertEqual(self.names(text), [("S", 3), ("get", 1), ("f", 8), ("h", 1)])


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

    def units(self, most=8, **texts):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "floor"
            folder.mkdir()
            for name, text in texts.items():
                (folder / name.replace("_h", ".h").replace("_cc", ".cc")).write_text(text)
            sources = sorted(map(str, folder.glob("*.cc")))
            return [[Path(source).stem for source in unit]
                    for unit in source_units.units_of(sources, most)]

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


class CaseLists(unittest.TestCase):
    LISTING = "Running main() from gtest_main.cc\nPlain.\n  One\nAll/Wide.\n  Two/cuda_f16  # GetParam() = 1\n"

    def test_cases_are_found_and_missing_ones_named(self):
        names = check_case_lists.cases_in(self.LISTING)
        self.assertEqual(names, ["Plain.One", "All/Wide.Two/cuda_f16"])
        patterns = check_case_lists.patterns_of("*Two/cuda*:Plain.*:-*Three*")
        self.assertEqual(patterns, ["*Two/cuda*", "Plain.*", "*Three*"])
        self.assertEqual(check_case_lists.unmatched(patterns, names), ["*Three*"])


if __name__ == "__main__":
    unittest.main()
