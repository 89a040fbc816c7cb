"""The command line of DeepSpeed's scripts."""

from __future__ import annotations

import argparse


def add_config_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds DeepSpeed's arguments to a script's."""
    group = parser.add_argument_group("DeepSpeed", "the engine's configuration")
    group.add_argument("--deepspeed", action="store_true",
                       help="accepted; this engine is always used")
    group.add_argument("--deepspeed_config", help="the engine's config (JSON)")
    group.add_argument("--deepspeed_mpi", action="store_true",
                       help="refused: ranks are processes of torch.distributed")
    return parser
