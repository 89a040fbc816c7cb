"""Runs the bench programs and parses the rates they print."""

import re
import subprocess


class BenchFailure(Exception):
    """A program failed or took too long. The message is the end of its output."""


def run_bench(program, flags, timeout=None):
    """Returns the program's output. `flags` maps names without dashes to values, None for no value."""
    words = [str(program)]
    for name, value in flags.items():
        words += [f"--{name}"] if value is None else [f"--{name}", str(value)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise BenchFailure(f"not done after {timeout:.0f} s") from error
    except OSError as error:
        raise BenchFailure(str(error)) from error
    if done.returncode != 0:
        said = " ".join((done.stderr.strip() or done.stdout.strip() or "nothing").split())
        raise BenchFailure(f"ended with status {done.returncode}: {said[-300:]}")
    return done.stdout


def number_in(output, pattern):
    """Returns the groups of the pattern as numbers, or a single group as one number."""
    found = re.search(pattern, output)
    if not found:
        raise BenchFailure(f"printed nothing like \"{pattern}\"")
    numbers = tuple(map(float, found.groups()))
    return numbers if len(numbers) > 1 else numbers[0]
