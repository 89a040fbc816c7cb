#!/usr/bin/env python3
"""Counts the test results of one or more build folders, including script tests.

Usage: count_tests.py BUILD_FOLDER...

Reads the reports test-results/*.xml (of ctest --output-junit and pytest --junitxml), which name every
test that ran. GoogleTest's results beside them name the cases of a test. Lists failed and skipped cases, then prints
one line: N passed, N failed, N skipped. Exits with 1 if a case failed or none passed.
"""
import json
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# The outcome of a case that several ranks ran is the worst of their outcomes.
WORST = [PASSED, SKIPPED, FAILED]


def cases_of(path):
    """Returns {case name: outcome} of one GoogleTest result file."""
    outcomes = {}
    for suite in json.loads(path.read_text(encoding="utf-8"))["testsuites"]:
        for case in suite["testsuite"]:
            if case["status"] == "NOTRUN":
                continue
            failed = case["result"] == "COMPLETED" and case.get("failures")
            skipped = case["result"] == "SKIPPED"
            name = f'{case["classname"]}.{case["name"]}'
            outcomes[name] = FAILED if failed else SKIPPED if skipped else PASSED
    return outcomes


def outcomes_of(results, name, status):
    """Returns {case: outcome} of the ctest test `name` that ended with `status`."""
    files = [results / f"{name}.json"] + sorted((results / name).glob("*.json"))
    merged, unreadable = {}, False
    for path in filter(Path.is_file, files):
        try:
            cases = cases_of(path)
        except (ValueError, KeyError):
            unreadable = True
            continue
        for case, outcome in cases.items():
            merged[case] = max(merged.get(case, PASSED), outcome, key=WORST.index)
    if status == FAILED and (merged or unreadable) and FAILED not in merged.values():
        merged["(did not end as it should)"] = FAILED
    return merged or {"": status}


def status_of(testcase):
    status = testcase.get("status")
    if status is None:  # pytest's
        tags = {child.tag for child in testcase}
        return FAILED if tags & {"failure", "error"} else SKIPPED if "skipped" in tags else PASSED
    return PASSED if status == "run" else FAILED if status == "fail" else SKIPPED


def main(folders):
    named = []
    for folder in map(Path, dict.fromkeys(folders)):
        results = folder / "test-results"
        reports = sorted(results.glob("*.xml"))
        if not reports:
            named.append((f"{folder.name}: no report", FAILED))
        for testcase in (case for report in reports for case in xml.parse(report).iter("testcase")):
            name = testcase.get("name")
            for case, outcome in outcomes_of(results, name, status_of(testcase)).items():
                named.append((f"{folder.name}: {name} {case}".rstrip(), outcome))
    for wanted in (SKIPPED, FAILED):
        for name in sorted(name for name, outcome in named if outcome == wanted):
            print(f"{wanted}: {name}")
    counts = {wanted: sum(outcome == wanted for _, outcome in named) for wanted in WORST}
    print(f"{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[SKIPPED]} skipped")
    return 1 if counts[FAILED] or not counts[PASSED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
