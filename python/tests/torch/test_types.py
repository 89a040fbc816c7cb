"""The types of onebit.torch and onebit.deepspeed, as mypy and editors see them."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

SOURCES = pathlib.Path(__file__).parents[2]


def test_mypy_finds_nothing(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", tmp_path, "onebit/torch", "onebit/deepspeed"],
        capture_output=True, text=True, check=False, cwd=SOURCES)
    assert done.returncode == 0, done.stdout + done.stderr
