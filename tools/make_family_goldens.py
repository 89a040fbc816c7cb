#!/usr/bin/env python3
"""Writes tests/formats/golden/families.json: what transformers writes for a small model of each
family of encoders (formats/families.h) and each class: config.json, and the names and shapes of the
tensors. With --models FOLDER it also writes the models, with random biases and norms.

    python3 tools/make_family_goldens.py [--models FOLDER]     (torch, transformers 5.24)
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path

import torch
import transformers
from safetensors import safe_open

GOLDEN = Path(__file__).resolve().parent.parent / "tests/formats/golden/families.json"
CLASSES = ["Model", "ForMaskedLM", "ForPreTraining", "ForSequenceClassification",
           "ForTokenClassification", "ForQuestionAnswering"]

SIZES = {"vocab_size": 101, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "initializer_range": 0.2}
AFTER_PAD = {"max_position_embeddings": 258, "layer_norm_eps": 1e-5}
SHORT = {"max_position_embeddings": 256}


def configs():
    roberta = {**SIZES, **AFTER_PAD, "type_vocab_size": 1}
    yield "Bert", transformers.BertConfig(**SIZES)
    yield "Roberta", transformers.RobertaConfig(**roberta)
    yield "XLMRoberta", transformers.XLMRobertaConfig(**roberta)
    yield "Camembert", transformers.CamembertConfig(**roberta)
    yield "RobertaPreLayerNorm", transformers.RobertaPreLayerNormConfig(**roberta)
    yield "DistilBert", transformers.DistilBertConfig(
        vocab_size=101, dim=48, n_layers=2, n_heads=4, hidden_dim=64, initializer_range=0.2, **SHORT)
    yield "Electra", transformers.ElectraConfig(embedding_size=32, **SIZES, **SHORT)
    yield "MPNet", transformers.MPNetConfig(**SIZES, **AFTER_PAD)
    yield "NomicBert", transformers.NomicBertConfig(**SIZES, **SHORT)
    yield "Gte", transformers.GteConfig(**SIZES, **SHORT)
    yield "ModernBert", transformers.ModernBertConfig(
        **{**SIZES, "num_hidden_layers": 4}, **SHORT, local_attention=32, pad_token_id=1,
        bos_token_id=0, eos_token_id=2, cls_token_id=0, sep_token_id=2)


def random_model(model):
    """Biases and norms are not 0 and 1, so that a mistaken one is noticed."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
            if "relative_attention_bias" in name:
                parameter.normal_(0, 0.5)
    model.tie_weights()
    return model


def written(folder):
    with safe_open(folder / "model.safetensors", "pt") as tensors:
        shapes = {name: tensors.get_slice(name).get_shape() for name in sorted(tensors.keys())}
    config = json.loads((folder / "config.json").read_text())
    return {"config": config, "tensors": shapes}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path)
    models = parser.parse_args().models
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    golden = {}
    with tempfile.TemporaryDirectory() as temporary:
        root = models or Path(temporary)
        for prefix, config in configs():
            for suffix in CLASSES:
                make = getattr(transformers, prefix + suffix, None)
                if make is None:
                    continue
                torch.manual_seed(1)
                config.num_labels = 3 if "Classification" in suffix else 2
                folder = root / (prefix + suffix)
                random_model(make(config)).save_pretrained(folder)
                golden[prefix + suffix] = written(folder)
    lines = [f'{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}'
             for name, entry in golden.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
