"""1-bit Adam, 1-bit LAMB and 0/1 Adam for any model of PyTorch.

    import onebit.torch as ot

    optimizer = ot.OnebitAdam(model.parameters(), lr=1e-4, freeze_step=2000)
    for batch in loader:
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()

The optimizer averages over the ranks itself: do not wrap the model in DistributedDataParallel.
"""

from onebit.torch.data_parallel import ddp_hook
from onebit.torch.engine_optimizer import EngineOptimizer
from onebit.torch.optimizers import OnebitAdam, OnebitLamb, ZeroOneAdam

__all__ = ["EngineOptimizer", "OnebitAdam", "OnebitLamb", "ZeroOneAdam", "ddp_hook"]
