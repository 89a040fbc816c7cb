#!/usr/bin/env python3
"""Counts what the tests of one or more build folders did, script tests included.

Usage: count_tests.py BUILD_FOLDER...

Reads test-results/ctest.xml (written by ctest --output-junit) for every test that ran, and the
GoogleTest results beside it for the cases inside. Names what failed and what was skipped, then ends
with one line: N passed, N failed, N skipped. Exit status 1 on a failure or if nothing ran.
"""
import json
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# A case that ranks ran together is what its worst rank made of it.
WORST = [PASSED, SKIPPED, FAILED]


def cases_of(path):
    """{case name: outcome} of one GoogleTest result file."""
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
    """{case: outcome} of the ctest test `name` that ended with `status`."""
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
    if testcase.get("status") == "run":
        return PASSED
    return FAILED if testcase.get("status") == "fail" else SKIPPED


def main(folders):
    named = []
    for folder in map(Path, folders):
        results = folder / "test-results"
        report = results / "ctest.xml"
        if not report.is_file():
            named.append((f"{folder.name}: no {report.name}", FAILED))
            continue
        for testcase in xml.parse(report).getroot().iter("testcase"):
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
