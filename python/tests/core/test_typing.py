"""The types of the package, as mypy and editors see them."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import onebit

SOURCES = pathlib.Path(__file__).parents[2]


def test_the_stub_is_that_of_the_module(tmp_path):
    made = tmp_path / "_core.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "onebit._core", "-o", made],
                   check=True, cwd=tmp_path)
    assert made.read_text() == (SOURCES / "onebit/_core.pyi").read_text(), \
        "make it again: python -m nanobind.stubgen -m onebit._core -o python/onebit/_core.pyi"


def test_mypy_finds_nothing(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    own = [SOURCES / "onebit" / name for name in sorted(os.listdir(SOURCES / "onebit"))
           if name.endswith(".py")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", tmp_path, *own],
        capture_output=True, text=True, check=False, cwd=SOURCES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_names_have_documentation():
    for name in onebit.__all__:
        found = getattr(onebit, name)
        assert found.__doc__, name
        if isinstance(found, type) and found.__module__ != "onebit._core":
            for member, value in vars(found).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{member}"
