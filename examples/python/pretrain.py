"""Pre-trains a small BERT on a text, on one process or on several, and reports its progress.

    python examples/python/pretrain.py FILE FOLDER [STEPS]
    torchrun --nproc-per-node 2 examples/python/pretrain.py FILE FOLDER [STEPS]
"""

import os
import pathlib
import sys
import time

import onebit

RECIPE = {
    "task": "pretrain",
    "train_batch_size": 16,
    "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": "auto"}},
    "model": {"preset": "bert-tiny"},
    "data": {"sequence_length": 64},
}
IS_FIRST = os.environ.get("RANK", "0") == "0"


class Progress(onebit.Callbacks):
    """Prints ten lines, and ends the run after an hour. A run that is started again continues."""

    def __init__(self, steps):
        self.every, self.begin = max(1, steps // 10), time.monotonic()

    def on_step(self, record):
        if IS_FIRST and record["step"] % self.every == 0:
            print(f"step {record['step']}: loss {record['loss']:.3f}")

    def should_stop(self):
        return time.monotonic() - self.begin > 3600


if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
text, folder = sys.argv[1], pathlib.Path(sys.argv[2])
steps = int(sys.argv[3]) if len(sys.argv) == 4 else 1000
store = folder / "store"
if IS_FIRST and not store.exists():
    folder.mkdir(parents=True, exist_ok=True)
    onebit.prepare(text, store, vocab_size=2000)
while not store.exists():  # it appears as a whole
    time.sleep(0.1)
result = onebit.train(RECIPE, data=store, output=folder / "run", resume=True, quiet=True,
                      callbacks=Progress(steps), overrides={"run.steps": steps})
if IS_FIRST:
    words = [best.token for best in onebit.FillMask(result.folder).fill("the [MASK]")[0]]
    print(f"after {result.steps} steps, the [MASK] is: {', '.join(words)}")
