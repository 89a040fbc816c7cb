"""`python -m onebit` and the command `onebit`: the native program, which lies in the package."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin" / "onebit"
    if not program.exists():
        sys.exit(f"onebit: the program is not at {program}: install the package again")
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
