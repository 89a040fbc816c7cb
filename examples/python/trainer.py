"""Fine-tunes a classifier with the Trainer of transformers and 1-bit Adam, in one process or in
several.

    python examples/python/trainer.py MODEL FILE OUTPUT
    torchrun --nproc-per-node 2 examples/python/trainer.py MODEL FILE OUTPUT

MODEL is a folder of transformers with a tokenizer. FILE has a label, a tab and a text on each line.
The same command continues from the last checkpoint in OUTPUT. Two things differ from a script with
AdamW: the optimizer, and the callback that saves its state.
"""

import sys
from pathlib import Path
from typing import Any

import torch
import transformers

import onebit.torch as ot

EPOCHS, BATCH, RATE, WARMUP = 3, 8, 1e-4, 0.2


class StateOfAllRanks(transformers.TrainerCallback):
    """Saves what every rank needs to continue. Trainer alone saves the state of rank 0."""

    def __init__(self, optimizer: ot.EngineOptimizer) -> None:
        self.optimizer = optimizer

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        full = self.optimizer.full_state_dict()
        if full is not None:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            torch.save(full, folder / "optimizer.partial")  # a kill leaves Trainer's file whole
            (folder / "optimizer.partial").replace(folder / "optimizer.pt")


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder, file, output = sys.argv[1:]
    rows = [line.split("\t", 1) for line in Path(file).read_text("utf-8").splitlines()]
    labels = sorted({label for label, _ in rows})
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=len(labels))
    data = [tokenizer(text.strip(), truncation=True, max_length=128)
            | {"label": labels.index(label)} for label, text in rows]
    # `use_cpu` connects ranks on CPUs, and each rank would clip by the norm of its own gradients.
    arguments = transformers.TrainingArguments(
        output, num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, save_steps=20,
        use_cpu=not torch.cuda.is_available(), max_grad_norm=0, logging_steps=10, report_to=[],
        disable_tqdm=True)
    updates = EPOCHS * len(data) // (BATCH * arguments.world_size)
    optimizer = ot.OnebitAdam(model.parameters(), lr=RATE, freeze_step=int(WARMUP * updates),
                              weight_decay=0.01, max_grad_norm=1.0)
    trainer = transformers.Trainer(
        model, arguments, train_dataset=data, processing_class=tokenizer,
        optimizers=(optimizer, None), callbacks=[StateOfAllRanks(optimizer)])
    trainer.train(resume_from_checkpoint=any(Path(output).glob("checkpoint-*")) or None)
    trainer.save_model(output)
    if optimizer.last_step:
        print(f"rank {optimizer.ranks.rank}: {optimizer.last_step['step']} updates, "
              f"{optimizer.last_step['phase']}")


if __name__ == "__main__":
    main()
