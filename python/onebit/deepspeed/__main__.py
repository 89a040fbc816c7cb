"""Runs a script of DeepSpeed's without a change: in it, `deepspeed` is onebit.deepspeed.

    torchrun --nproc-per-node 2 -m onebit.deepspeed SCRIPT [ARGUMENT ...]
"""

import os
import runpy
import sys

import onebit.deepspeed
from onebit.deepspeed.modules import add_aliases


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    add_aliases(onebit.deepspeed.__name__, "deepspeed")
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))  # as `python SCRIPT` sets it
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
