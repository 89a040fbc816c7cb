#!/usr/bin/env python3
"""Makes tests/formats/golden/*.safetensors with the real library (pip install safetensors torch)."""
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

GOLDEN = Path(__file__).resolve().parents[1] / "tests/formats/golden"


def dtypes():
    tensors = {
        "f32": torch.tensor([[0, 1.5, -2.25], [3e38, 1e-40, -0.0]]),
        "f16": torch.tensor([0, 1.5, -2.25, 65504, 2.0 ** -24], dtype=torch.float16),
        "bf16": torch.tensor([1.0, -2.0, 2.0 ** -126], dtype=torch.bfloat16),
        "f64": torch.tensor([1 / 3], dtype=torch.float64),
        "i64": torch.arange(4),
        "u8": torch.arange(5, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(42.0),
        "empty": torch.zeros(0, 4),
        "rank5": torch.ones(1, 2, 1, 2, 1),
    }
    save_file(tensors, GOLDEN / "dtypes.safetensors", {"format": "pt"})


def sharded():
    folder = GOLDEN / "sharded"
    folder.mkdir(exist_ok=True)
    shards = [{"a": torch.tensor([1.0, 2.0]), "c": torch.tensor([4.0, 5.0, 6.0])},
              {"b": torch.tensor([3.0])}]
    weight_map = {}
    for i, shard in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        save_file(shard, folder / name, {"format": "pt"})
        weight_map.update({key: name for key in shard})
    index = {"metadata": {"total_size": 24}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    dtypes()
    sharded()
