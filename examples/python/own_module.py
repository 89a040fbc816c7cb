"""Trains a small model of characters with 1-bit Adam, in one process or in several.

    python examples/python/own_module.py FILE [STEPS]
    torchrun --nproc-per-node 2 examples/python/own_module.py FILE [STEPS]

Only two lines differ from a script for one process and AdamW: the process group and the optimizer.
"""

import os
import sys

import torch
import torch.distributed as dist

import onebit.torch as ot

LENGTH, BATCH = 64, 16


class CharacterModel(torch.nn.Module):
    def __init__(self, characters: int, hidden: int = 128) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(characters, hidden)
        self.layers = torch.nn.GRU(hidden, hidden, num_layers=2, batch_first=True)
        self.head = torch.nn.Linear(hidden, characters)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(characters))[0])


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    steps = int(sys.argv[2]) if len(sys.argv) == 3 else 300
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    names = sorted(set(text))
    data = torch.tensor([names.index(character) for character in text])
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if dist.is_initialized() else 0

    torch.manual_seed(0)
    model = CharacterModel(len(names))
    optimizer = ot.OnebitAdam(model.parameters(), lr=3e-3, freeze_step=steps // 5,
                              max_grad_norm=1.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=steps)
    random = torch.Generator().manual_seed(1 + rank)  # every rank draws other samples
    for step in range(1, steps + 1):
        starts = torch.randint(len(data) - LENGTH - 1, (BATCH,), generator=random)
        rows = torch.stack([data[start:start + LENGTH + 1] for start in starts])
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        schedule.step()
        if rank == 0 and step % (steps // 6) == 0:
            report = optimizer.last_step
            print(f"step {step}  loss {loss.item():.3f}  {report['phase']}  "
                  f"{report['wire_bytes'] / 1024:.0f} KiB sent", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
