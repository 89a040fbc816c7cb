"""DeepSpeed's interface: a training script for DeepSpeed runs with one import changed.

    import onebit.deepspeed as deepspeed

    parser = deepspeed.add_config_arguments(parser)
    engine, optimizer, loader, scheduler = deepspeed.initialize(
        args=args, model=model, model_parameters=model.parameters(), training_data=data)
    for batch in loader:
        loss = engine(batch)
        engine.backward(loss)
        engine.step()

`torchrun ... -m onebit.deepspeed SCRIPT` runs a script without any change.

docs/from-deepspeed.md says which keys of a config do what, and which names there are. A key or a
name that onebit cannot fulfil is an error that says what to use.
"""

from typing import Any

from onebit.deepspeed import comm, zero
from onebit.deepspeed.accelerator import get_accelerator
from onebit.deepspeed.arguments import add_config_arguments
from onebit.deepspeed.config import (ADAM_OPTIMIZER, LAMB_OPTIMIZER, DeepSpeedConfig,
                                     DeepSpeedConfigError)
from onebit.deepspeed.engine import DeepSpeedEngine
from onebit.deepspeed.initialize import initialize
from onebit.deepspeed.launch import init_distributed
from onebit.deepspeed.modules import log_dist, logger, make_modules
from onebit.deepspeed.optimizer import DeepSpeedOptimizer

#: The version of DeepSpeed whose interface this is: scripts compare it.
__version__ = "0.16.5"

make_modules(__name__)
# No files: make_modules() has made them.
from onebit.deepspeed.ops.transformer import (  # type: ignore[import-not-found] # noqa: E402
    DeepSpeedTransformerConfig, DeepSpeedTransformerLayer)
from onebit.deepspeed.pipe import (  # type: ignore[import-not-found] # noqa: E402
    PipelineModule)
from onebit.deepspeed.runtime.activation_checkpointing import (  # type: ignore # noqa: E402
    checkpointing)

__all__ = [
    "ADAM_OPTIMIZER", "LAMB_OPTIMIZER", "DeepSpeedConfig", "DeepSpeedConfigError",
    "DeepSpeedEngine", "DeepSpeedOptimizer", "DeepSpeedTransformerConfig",
    "DeepSpeedTransformerLayer", "PipelineModule", "add_config_arguments", "checkpointing", "comm",
    "get_accelerator", "init_distributed", "initialize", "log_dist", "logger", "zero",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"onebit.deepspeed has no `{name}`: docs/from-deepspeed.md lists the names "
                         "of DeepSpeed that it has")
