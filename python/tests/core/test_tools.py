"""Commands as functions: what the program prints as JSON, or writes."""

import json
import re
import subprocess
import sys

import pytest

import onebit
from conftest import onebit as program


def test_a_conversion_equals_the_programs(pretrained, tmp_path):
    program("convert", pretrained, tmp_path / "program")
    notes = onebit.convert(pretrained, tmp_path / "package")
    assert notes and all(isinstance(note, str) for note in notes)
    names = sorted(path.name for path in (tmp_path / "program").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "package").iterdir())
    for name in names:
        assert (tmp_path / "program" / name).read_bytes() == \
            (tmp_path / "package" / name).read_bytes(), name
    with pytest.raises(onebit.Error, match="dtype is one of bf16, f16, f32"):
        onebit.convert(pretrained, tmp_path / "other", dtype="f8")
    with pytest.raises(onebit.Error, match="exists"):
        onebit.convert(pretrained, tmp_path / "package")


def test_a_plan_equals_the_programs(folder, pretrained, tmp_path):
    program("doctor", "--output", tmp_path / "costs.json", "--threads", 1)
    words = ["plan", "-r", folder / "recipe.json", "--hosts", 2, "--bandwidth", "1Gb/s",
             "--measured", tmp_path / "costs.json", "--json", "--threads", 1]
    expected = json.loads(program(*words))
    made = onebit.plan(folder / "recipe.json", hosts=2, bandwidth="1Gb/s",
                       measured=tmp_path / "costs.json", threads=1)
    assert made == expected
    with pytest.raises(onebit.Error, match="bandwidth"):
        onebit.plan(folder / "recipe.json", bandwidth="fast")


def test_the_doctor_says_what_the_program_says():
    expected = json.loads(program("doctor", "--json"))
    found = onebit.doctor()
    fixed = ("onebit", "host", "mpi", "instruction_set", "processor", "processors", "memory_bytes")
    assert [found[name] for name in fixed] == [expected[name] for name in fixed]
    assert all(isinstance(problem, str) for problem in found["problems"])
    assert onebit.doctor(measure=True, threads=1)["memory_bytes_per_second"] > 0


def test_facts_about_the_package():
    done = subprocess.run([sys.executable, "-m", "onebit.info"], capture_output=True, text=True,
                          check=True)
    assert done.stderr == ""
    lines = dict(re.split(r":\s+", line, maxsplit=1) for line in done.stdout.splitlines())
    assert lines["onebit"] == onebit.__version__ == program("--version").strip()
    assert lines["python"] == sys.version.split()[0]
    assert "tcp" in lines["transports"] and lines["instruction_set"]
