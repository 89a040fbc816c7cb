"""The command line of DeepSpeed's scripts."""

from __future__ import annotations

import argparse
from typing import Any

from onebit import _core, arguments


def add_config_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds DeepSpeed's arguments to a script's. DeepSpeed's launcher also gives --local_rank, which
    a script declares itself."""
    arguments.instance(parser, "parser", argparse.ArgumentParser, "an argparse.ArgumentParser")
    group = parser.add_argument_group("DeepSpeed", "the engine's configuration")
    group.add_argument("--deepspeed", action="store_true",
                       help="accepted; this engine is always used")
    group.add_argument("--deepspeed_config", help="the engine's config (JSON)")
    group.add_argument("--deepspeed_mpi", action="store_true", help="mpirun has started the ranks")
    group.add_argument("--deepscale", action="store_true", help=argparse.SUPPRESS)
    group.add_argument("--deepscale_config", help=argparse.SUPPRESS)
    return parser


def config_argument(args: Any) -> Any:
    """Returns the config that the command line names, or None. Error: both of its names are used."""
    new, old = (getattr(args, name, None) for name in ("deepspeed_config", "deepscale_config"))
    if new is not None and old is not None:
        raise _core.Error("--deepscale_config is the old name of --deepspeed_config: give one of "
                          "them")
    return new if new is not None else old
