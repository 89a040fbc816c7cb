"""Facts about the package: `python -m onebit.info` prints them."""

from __future__ import annotations

import json
import pathlib
import platform
import sys
from importlib import util
from typing import Any

from onebit import _core


def facts() -> dict[str, Any]:
    """The versions of onebit, Python, numpy and oneDNN, the processor's instruction set, the
    transports that can be used ("mpi" says why it cannot), CUDA, and where the package lies."""
    found: dict[str, Any] = json.loads(_core.info())
    found["python"] = platform.python_version()
    found["numpy"] = None
    if util.find_spec("numpy") is not None:
        import numpy
        found["numpy"] = numpy.__version__
    found["module"] = _core.__file__
    program = pathlib.Path(__file__).parent / "bin" / "onebit"
    found["program"] = str(program) if program.exists() else None
    return found


def main() -> int:
    """Prints the facts, one on each line."""
    for name, value in facts().items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        print(f"{name + ':':18}{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
