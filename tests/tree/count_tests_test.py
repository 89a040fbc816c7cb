"""The count of tests: those that passed, failed, or did not end."""
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import count_tests  # noqa: E402


def case(name, result="COMPLETED", failed=False, status="RUN"):
    one = {"classname": "Suite", "name": name, "status": status, "result": result}
    return one | ({"failures": [{"failure": "no"}]} if failed else {})


def gtest(*cases):
    return json.dumps({"testsuites": [{"name": "Suite", "testsuite": list(cases)}]})


class CountTests(unittest.TestCase):
    def count(self, ctest, files):
        """Returns (exit status, printed lines) for {ctest test: status} and {result file: text}."""
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "build" / "test-results"
            results.mkdir(parents=True)
            cases = "".join(f'<testcase name="{name}" status="{status}"/>'
                            for name, status in ctest.items())
            (results / "ctest.xml").write_text(f"<testsuite>{cases}</testsuite>")
            for name, text in files.items():
                (results / name).parent.mkdir(exist_ok=True)
                (results / name).write_text(text)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                status = count_tests.main([str(results.parent)])
            return status, printed.getvalue().splitlines()

    def test_cases_and_scripts_count(self):
        status, lines = self.count(
            {"text": "run", "floors": "run"},
            {"text.json": gtest(case("a"), case("b", "SKIPPED"),
                                case("filtered", "SUPPRESSED", status="NOTRUN"))})
        self.assertEqual(lines, ["skipped: build: text Suite.b", "2 passed, 0 failed, 1 skipped"])
        self.assertEqual(status, 0)

    def test_failures_are_named(self):
        status, lines = self.count({"text": "fail", "floors": "fail"},
                                   {"text.json": gtest(case("a"), case("b", failed=True))})
        self.assertEqual(lines, ["failed: build: floors", "failed: build: text Suite.b",
                                 "1 passed, 2 failed, 0 skipped"])
        self.assertEqual(status, 1)

    def test_a_crash_is_a_failure_whatever_was_written_before(self):
        for files in ({}, {"text.json": gtest(case("a"))}, {"text.json": "{ cut short"}):
            status, lines = self.count({"text": "fail"}, files)
            self.assertIn(" 1 failed", lines[-1])
            self.assertEqual(status, 1)

    def test_ranks_of_one_run_count_once_by_the_worst(self):
        status, lines = self.count(
            {"comm_mpi2": "fail"},
            {"comm_mpi2/0.json": gtest(case("a"), case("b"), case("c", "SKIPPED")),
             "comm_mpi2/1.json": gtest(case("a"), case("b", failed=True), case("c"))})
        self.assertEqual(lines[-1], "1 passed, 1 failed, 1 skipped")
        self.assertEqual(status, 1)

    def test_nothing_run_is_no_success(self):
        status, lines = self.count({"text": "run"}, {"text.json": gtest(case("a", "SKIPPED"))})
        self.assertEqual((status, lines[-1]), (1, "0 passed, 0 failed, 1 skipped"))
        status, lines = self.count({"text": "notrun"}, {})
        self.assertEqual((status, lines[-1]), (1, "0 passed, 0 failed, 1 skipped"))

    def test_results_of_pytest_count_too(self):
        status, lines = self.count(
            {"text": "run"},
            {"python.xml": '<testsuites><testsuite><testcase name="a"/><testcase name="b"><failure/>'
                           '</testcase><testcase name="c"><skipped/></testcase></testsuite>'
                           '</testsuites>'})
        self.assertEqual(lines, ["skipped: build: c", "failed: build: b",
                                 "2 passed, 1 failed, 1 skipped"])
        self.assertEqual(status, 1)

    def test_a_folder_without_results_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(count_tests.main([folder]), 1)
        self.assertIn("1 failed", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
