"""The checks of the tree report every kind of violation, which tests plant in a small tree."""
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_case_lists  # noqa: E402
import check_floors  # noqa: E402
import check_layout  # noqa: E402
import check_links  # noqa: E402
import check_prose  # noqa: E402
import draw_pictures  # noqa: E402
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


# Wings of the floors in planted trees, the highest first.
WINGS = {"inspect": "program", "squad": "apps", "engine": "exchange", "transport": "exchange", "comm": "exchange", "model": "math",
         "ops": "math", "base": "ground"}


def with_table(files, **floors):
    """Adds the table of floors and their CMakeLists.txt to a tree, with {floor: may include}."""
    table = {"base": "nothing", "comm": "nothing", "engine": "nothing", "model": "nothing",
             "ops": "nothing"} | floors
    floors = sorted(table, key=lambda floor: list(WINGS.values()).index(WINGS[floor]))
    rows = "".join(f"| {WINGS[floor]} | `{floor}` | what it is | {table[floor]} |\n"
                   for floor in floors)
    tree = {"onebit/README.md": "| wing | floor | | |\n|---|---|---|---|\n" + rows}
    for floor, below in table.items():
        linked = "" if below == "nothing" else f" DEPENDS {below}"
        tree[f"onebit/{WINGS[floor]}/{floor}/CMakeLists.txt"] = (
            f"onebit_floor({floor} SOURCES a.cc{linked})\n")
    return tree | files


class Floors(unittest.TestCase):
    def breach(self, files, expected, **floors):
        status, printed = output_of(check_floors, with_table(files, **floors))
        self.assertEqual(status, 1, printed)
        self.assertIn(expected, printed)

    def test_good_tree_passes(self):
        status, printed = output_of(check_floors, with_table({
            "onebit/ground/base/a.h": "#pragma once\n#include <vector>\n",
            "onebit/math/ops/b.cc": '// #include "onebit/math/model/x.h"\n'
                                    '#include "onebit/ground/base/a.h"\n'},
            ops="base"))
        self.assertEqual(status, 0, printed)

    def test_table_names_more_than_is_included(self):
        self.breach({"onebit/math/ops/b.cc": ""}, "no file of floor ops includes base", ops="base")

    def test_cmake_links_something_else(self):
        self.breach({"onebit/ground/base/a.h": "#pragma once\n",
                     "onebit/math/ops/b.cc": '#include "onebit/ground/base/a.h"\n',
                     "onebit/math/ops/CMakeLists.txt": "onebit_floor(ops DEPENDS base comm)\n"},
                    "onebit/math/ops/CMakeLists.txt:1: DEPENDS is base comm", ops="base")

    def test_upward_include(self):
        self.breach({"onebit/ground/base/a.h": '#pragma once\n#include "onebit/math/ops/b.h"\n',
                     "onebit/math/ops/b.h": "#pragma once\n"},
                    "onebit/ground/base/a.h:2: floor base")

    def test_sideways_include(self):
        self.breach({"onebit/exchange/engine/a.cc": '#include "onebit/math/model/b.h"\n',
                     "onebit/math/model/b.h": "#pragma once\n"},
                    "onebit/exchange/engine/a.cc:1: floor engine")

    def test_short_path(self):
        self.breach({"onebit/ground/base/a.cc": '#include "b.h"\n', "onebit/ground/base/b.h": ""},
                    "give the path from the repository root")

    def test_missing_file(self):
        self.breach({"onebit/ground/base/a.cc": '\n#include "onebit/ground/base/b.h"\n'},
                    "onebit/ground/base/a.cc:2: \"onebit/ground/base/b.h\": there is no such file")

    def test_include_of_tests(self):
        self.breach({"onebit/ground/base/a.cc": '#include "tests/base/b.h"\n',
                     "tests/base/b.h": ""},
                    "outside onebit/")

    def test_unknown_floor(self):
        self.breach({"onebit/ground/attic/a.cc": ""}, "is on no floor")

    def test_an_application_needs_no_row(self):
        files = {"onebit/ground/base/a.h": "", "onebit/math/ops/b.h": "", "onebit/apps/length/d.h": "",
                 "onebit/apps/squad/c.cc": '#include "onebit/ground/base/a.h"\n',
                 "onebit/apps/squad/c.h": "",
                 "onebit/apps/length/d.cc": '#include "onebit/ground/base/a.h"\n',
                 "onebit/apps/length/CMakeLists.txt": "onebit_floor(length DEPENDS base)\n",
                 "onebit/program/inspect/e.cc": '#include "onebit/apps/length/d.h"\n'
                                                '#include "onebit/apps/squad/c.h"\n'}
        floors = {"squad": "base", "inspect": "apps"}
        lists = {"onebit/program/inspect/CMakeLists.txt":
                 "onebit_floor(inspect DEPENDS ${ONEBIT_APPS})\n"}
        status, printed = output_of(check_floors, with_table(files, **floors) | lists)
        self.assertEqual(status, 0, printed)
        files["onebit/apps/length/d.h"] = '#include "onebit/math/ops/b.h"\n'
        status, printed = output_of(check_floors, with_table(files, **floors) | lists)
        self.assertEqual(status, 1)
        self.assertIn("onebit/apps/length/d.h:1: floor length may include base", printed)

    def test_vendor_headers_elsewhere(self):
        for header in ("dnnl.hpp", "mpi.h", "cuda_runtime.h", "nccl.h", "omp.h"):
            self.breach({"onebit/exchange/engine/a.cc": f"#include <{header}>\n"},
                        f"onebit/exchange/engine/a.cc:1: includes {header}")

    def test_vendor_headers_where_they_belong(self):
        status, printed = output_of(check_floors, with_table({
            "onebit/math/ops/matmul_cpu.cc": "#include <dnnl.hpp>\n",
            "onebit/exchange/transport/mpi_plugin.cc": "#include <mpi.h>\n",
            "onebit/math/ops/matmul_cuda.cu": "#include <cuda_runtime.h>\n"},
            transport="nothing"))
        self.assertEqual(status, 0, printed)

    def test_cycle(self):
        self.breach({"onebit/ground/base/a.h": '#include "onebit/ground/base/b.h"\n',
                     "onebit/ground/base/b.h": '#include "onebit/ground/base/a.h"\n'},
                    "include cycle")

    def test_floors_that_include_each_other(self):
        self.breach({"onebit/math/ops/a.h": '#include "onebit/exchange/comm/b.h"\n',
                     "onebit/exchange/comm/b.h": "",
                     "onebit/exchange/comm/c.cc": '#include "onebit/math/model/d.h"\n',
                     "onebit/math/model/d.h": "",
                     "onebit/math/model/e.cc": '#include "onebit/math/ops/f.h"\n',
                     "onebit/math/ops/f.h": ""},
                    "floor ops may include comm, which may include ops in turn",
                    ops="comm", comm="model", model="ops")

    def test_floor_in_another_wing(self):
        self.breach({"onebit/ground/ops/a.cc": ""},
                    "onebit/ground/ops/a.cc:1: floor ops belongs to wing math")

    def test_wing_above(self):
        self.breach({"onebit/math/ops/a.cc": '#include "onebit/exchange/comm/b.h"\n',
                     "onebit/exchange/comm/b.h": "#pragma once\n"},
                    "floor ops of wing math may include comm of exchange, which is a higher wing",
                    ops="comm")


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


class Prose(unittest.TestCase):
    WORDS = "one fact is one sentence " * 20  # 100 words

    def test_semicolons_and_pronouns_are_counted_where_people_read(self):
        status, printed = output_of(check_prose, {
            "docs/a.md": self.WORDS + "a; b; `c;`\n```\nd; e; f;\n```\n\n    g;\n",
            "onebit/ground/base/a.cc": "// " + self.WORDS + "\n// those of\n/* that\n of */\n"
                                       'f("// those of");\n',
            "tools/a.py": f'"""{self.WORDS} a; b; c."""\nx = "d; e;"; y = 1  # f;\n'})
        self.assertEqual(status, 1, printed)
        self.assertIn("docs/a.md:1: 2 semicolons in 102 words, 19.61 per 1,000; at most 3.0", printed)
        self.assertIn("onebit/ground/base:1: 2 those of in 104 words", printed)
        self.assertIn("tools:1: 3 semicolons in 104 words", printed)
        self.assertIn("3 problems", printed)

    def test_a_short_place_may_have_one(self):
        status, printed = output_of(check_prose, {"docs/a.md": "a; b, those of c\n"})
        self.assertEqual(status, 0, printed)


class Pictures(unittest.TestCase):
    def test_pictures_of_the_documents_are_drawn_by_the_script(self):
        documents = Path(__file__).resolve().parents[2] / "docs"
        for name, draw in draw_pictures.PICTURES.items():
            self.assertTrue(draw().svg() == (documents / f"{name}.svg").read_text(),
                            f"docs/{name}.svg is stale: tools/draw_pictures.py")


class Layout(unittest.TestCase):
    def breach(self, name, text, expected):
        status, printed = output_of(check_layout, {name: text})
        self.assertEqual(status, 1, printed)
        self.assertIn(f"{name}:", printed)
        self.assertIn(expected, printed)

    def test_good_tree_passes(self):
        status, printed = output_of(check_layout, {
            "onebit/ground/base/a.h": "// Contract.\n#pragma once\nint f();\n",
            "onebit/ground/base/a.cc": "int f() {\n" + "  g();\n" * 58 + "}\n"})
        self.assertEqual(status, 0, printed)

    def test_a_recipe_names_its_task(self):
        self.breach("recipes/a.json", '{"run": {"steps": 3}}\n', 'a recipe names its "task"')

    def test_long_files(self):
        self.breach("onebit/ground/base/a.h", "#pragma once\n" * 201, "at most 200")
        self.breach("onebit/ground/base/a.cc", "\n" * 401, "at most 400")

    def test_long_function(self):
        self.breach("onebit/ground/base/a.cc", "int f() {\n" + "  g();\n" * 59 + "}\n",
                    "f has 61 lines")
        arguments = "  g({.a = 1,\n" + "     .b = 2,\n" * 30 + "     .c = 3});\n"
        self.breach("onebit/ground/base/a.cc", "int f() {\n" + arguments + "  g();\n" * 57 + "}\n",
                    "f has 61 lines")

    def test_names(self):
        for name in ("utils", "common", "string_helpers", "adam_new", "adam_v2"):
            self.breach(f"onebit/ground/base/{name}.cc", "", "says nothing")
        self.breach("onebit/ground/base/LayerNorm.cc", "", "snake_case")
        self.breach("onebit/ground/base/deep/a.cc", "", "is deeper")

    def test_long_comment(self):
        self.breach("onebit/ground/base/a.cc", "  // " + "a " * 48 + "\n",
                    "a comment of 101 columns")

    def test_pragma_once(self):
        self.breach("onebit/ground/base/a.h", "#ifndef A\n#define A\n#endif\n", "#pragma once")

    def test_option_in_code(self):
        self.breach("onebit/ground/base/a.cc", "#ifdef ONEBIT_HAS_MPI\n#endif\n", "picks files")
        status, printed = output_of(check_layout, {
            "onebit/ground/base/a_inl.h": "// Once a target.\n#if defined(A_INL_H_) == \\\n"
                                   "    defined(HWY_TARGET_TOGGLE)\n#define A_INL_H_\n#endif\n"})
        self.assertEqual(status, 0, printed)

    def test_macro_budget(self):
        self.breach("onebit/ground/base/a.cc", "".join(f"#define M{i}\n" for i in range(11)),
                    "at most 10")

    def test_words(self):
        self.breach("onebit/ground/base/a.cc", "// TO" "DO later\n", "open mark")
        self.breach("docs/a.md", "see /" "home/me/x\n", "absolute path")
        self.breach("docs/a.md", "get it from https:/" "/packages.example/x\n", "LINK_HOSTS")

    def test_exact_power_in_a_kernel(self):
        self.breach("onebit/math/kernels/a_cuda.h", "#pragma once\nfloat y = exp2f(x);\n",
                    "approximate_exp2()")

    def test_calls_that_belong_to_one_place(self):
        for code, expected in (
                ("text = value->dump();", "dump: throws for bytes that are not UTF-8"),
                ("text = std::strerror(code);", "reason_of()"),
                ('require(::f() == 0,\n        "{}", reason_of(errno));', "a.cc:1: require: errno"),
                ('std::cerr << 1;', "show()"), ('fmt::print(stderr, "{}", t);', "show()")):
            self.breach("onebit/ground/base/a.cc", code + "\n", expected)
        status, printed = output_of(check_layout, {
            "onebit/ground/base/json.cc": "text = json.dump(2);\n",
            "onebit/ground/base/b.cc": "// json.dump() throws\nconst int reason = errno;\n"
                                       "fail(reason);\n"})
        self.assertEqual(status, 0, printed)

    def test_op_family(self):
        status, printed = output_of(check_layout, {"onebit/math/ops/gelu_cpu.cc": ""})
        self.assertEqual(status, 1)
        for missing in ("onebit/math/ops/gelu.h", "onebit/math/ops/gelu.cc"):
            self.assertIn(f"{missing} is missing", printed)
        self.assertIn("tests/ops/gelu_test.cc is missing", printed)
        self.assertNotIn("gelu_cuda.cu is missing", printed)

    def test_op_family_may_have_several_operations_and_inner_pieces(self):
        status, printed = output_of(check_layout, {
            "onebit/math/ops/attention.h": "#pragma once\n", "onebit/math/ops/attention.cc": "",
            "onebit/math/ops/attention_cpu.cc": "", "onebit/math/ops/attention_backward_cpu.cc": "",
            "onebit/math/ops/attention_plan.h": "#pragma once\n",
            "tests/ops/attention_backward_test.cc": ""})
        self.assertEqual(status, 0, printed)

    def test_op_floor_holds_families_only(self):
        status, printed = output_of(check_layout, {"onebit/math/ops/simd_inl.h": "#pragma once\n"})
        self.assertEqual(status, 1)
        self.assertIn("onebit/math/ops/simd_inl.h:1: belongs to no op family", printed)

    def test_op_family_with_cuda(self):
        status, printed = output_of(check_layout, {"onebit/math/ops/gelu_cpu.cc": "",
                                                   "onebit/math/ops/copy_cuda.cu": ""})
        self.assertEqual(status, 1)
        self.assertIn("onebit/math/ops/gelu_cuda.cu is missing", printed)

    def test_mirror(self):
        self.breach("onebit/ground/base/CMakeLists.txt", "", "there is no tests/base")
        self.breach("tests/attic/a_test.cc", "", "mirrors no floor")

    def test_tests_are_named_after_what_they_test(self):
        good = {"onebit/ground/base/log.h": "#pragma once\n", "tests/base/log_test.cc": "",
                "tests/base/log_levels_test.cc": "", "tests/base/folder.h": "#pragma once\n"}
        status, printed = output_of(check_layout, good)
        self.assertEqual(status, 0, printed)
        for name in ("logs_test", "writer_test"):
            status, printed = output_of(check_layout, good | {f"tests/base/{name}.cc": ""})
            self.assertEqual(status, 1)
            self.assertIn(f"tests/base/{name}:1: is named after no file of floor base", printed)

    def test_every_header_of_the_text_floors_has_a_test(self):
        header = "#pragma once\n"
        files = {"onebit/apps/squad/squad_config.h": header,
                 "onebit/apps/squad/squad_task.h": header,
                 "tests/squad/squad_task_test.cc": ""}
        printed = output_of(check_layout, files)[1]
        self.assertNotIn("there is no tests/squad", printed)
        files |= {"onebit/apps/squad/dataset.h": header}
        self.assertIn("tests/squad:1: there is no tests/squad/dataset_test.cc",
                      output_of(check_layout, files)[1])

    def test_a_floor_has_few_files(self):
        files = {f"onebit/data/samples/a{i}.cc": "" for i in range(45)}
        self.assertNotIn("at most 45", output_of(check_layout, files)[1])
        files["onebit/data/samples/b.cc"] = ""
        self.assertIn("onebit/data/samples:1: 46 files, at most 45",
                      output_of(check_layout, files)[1])

    def test_a_short_header_has_two_users_or_a_test(self):
        user = '#include "onebit/ground/base/small.h"\n'
        files = {"onebit/ground/base/small.h": "#pragma once\nint f();\n",
                 "onebit/ground/base/small.cc": user, "onebit/ground/base/large.cc": user}
        found = "small.h:1: only onebit/ground/base/large.cc includes this header of 1 lines"
        self.assertIn(found, output_of(check_layout, files)[1])
        for another in ({"onebit/ground/base/other.cc": user}, {"tests/base/small_test.cc": user},
                        {"onebit/ground/base/small.h": "#pragma once\n" + "int f();\n" * 21}):
            self.assertNotIn("includes this header", output_of(check_layout, files | another)[1])

    def test_names_of_exceptions_do_not_outlive_them(self):
        files = {"onebit/program/cli/log.h": "#pragma once\n", "tests/cli/log_test.cc": ""}
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
