"""DeepSpeed's interface: a training script for DeepSpeed runs with one import changed.

    import onebit.deepspeed as deepspeed

    parser = deepspeed.add_config_arguments(parser)
    engine, optimizer, loader, scheduler = deepspeed.initialize(
        args=args, model=model, model_parameters=model.parameters(), training_data=data)
    for batch in loader:
        loss = engine(batch)
        engine.backward(loss)
        engine.step()

docs/from-deepspeed.md says which keys of a config do what. A key that onebit does not know, or
cannot fulfil, is an error that names it.
"""

from onebit.deepspeed.arguments import add_config_arguments
from onebit.deepspeed.engine import DeepSpeedEngine, init_distributed, initialize

__all__ = ["DeepSpeedEngine", "add_config_arguments", "init_distributed", "initialize"]
