#!/usr/bin/env python3
"""Writes tests/model/golden for the tests of onebit/model: losses, gradients and 20 AdamW steps of
Hugging Face's BertForPreTraining. For a wider model it writes only the norm of each gradient and
its products with 16 pseudo-random vectors, from which tests estimate the norm of an error. It also
writes logits and losses of BertForSequenceClassification for each of its problem types, and logits,
loss and gradients of BertForTokenClassification.

    pip install torch transformers numpy
    tools/make_model_goldens.py tests/model/golden

Weights are not stored: both sides compute them from the same integer hash of (name, element). The
oracle runs in double precision. The script prints how far its f32 results differ from that.
"""

import argparse
import json
import pathlib

import numpy as np
import torch
from transformers import (BertConfig, BertForPreTraining, BertForSequenceClassification,
                          BertForTokenClassification)

CONFIG = dict(
    vocab_size=90,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=32,
    type_vocab_size=2,
    layer_norm_eps=1e-12,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
WIDE = dict(CONFIG, vocab_size=1000, hidden_size=128, num_attention_heads=2,
            intermediate_size=512, max_position_embeddings=320)
WIDE_LENGTHS = [300, 77, 128, 3]
PROJECTIONS = 16
LENGTHS = [[17, 9, 26], [12, 31], [20, 20, 5], [32], [8, 8, 8, 8]]
STEPS = 20
ADAMW = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01)


def hashed(name, count):
    """Uniform in [-0.5, 0.5): FNV-1a of the name, then the finalizer of MurmurHash3."""
    seed = 0x811C9DC5
    for letter in name.encode():
        seed = ((seed ^ letter) * 0x01000193) & 0xFFFFFFFF
    x = np.arange(count, dtype=np.uint64) * 2654435761 + seed
    x &= 0xFFFFFFFF
    x ^= x >> 16
    x = (x * 0x85EBCA6B) & 0xFFFFFFFF
    x ^= x >> 13
    x = (x * 0xC2B2AE35) & 0xFFFFFFFF
    x ^= x >> 16
    return (x >> 8).astype(np.float64) / 2**24 - 0.5


def fill(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = hashed(name, parameter.numel()) * 0.25
            if "LayerNorm.weight" in name:
                drawn += 1.0
            parameter.copy_(torch.from_numpy(drawn.astype(np.float32)).view_as(parameter))


def make_batch(seed, lengths, vocab_size):
    rng = np.random.default_rng(seed)
    batch = dict(tokens=[], segments=[], starts=[0], masked_rows=[], masked_targets=[],
                 next_sentence=[])
    for length in lengths:
        begin = batch["starts"][-1]
        tokens = rng.integers(5, vocab_size, length)
        tokens[0] = 2
        split = int(rng.integers(2, length))
        masked = sorted(rng.choice(np.arange(1, length), max(1, length // 5), replace=False))
        batch["tokens"] += [int(t) for t in tokens]
        batch["segments"] += [0] * split + [1] * (length - split)
        batch["masked_rows"] += [int(begin + m) for m in masked]
        batch["masked_targets"] += [int(t) for t in rng.integers(5, vocab_size, len(masked))]
        batch["next_sentence"].append(int(rng.integers(0, 2)))
        batch["starts"].append(begin + length)
    return batch


def padded(batch):
    count, width = len(batch["starts"]) - 1, max(np.diff(batch["starts"]))
    arrays = {k: torch.zeros(count, width, dtype=torch.long)
              for k in ("input_ids", "token_type_ids", "attention_mask")}
    labels = torch.full((count, width), -100, dtype=torch.long)
    targets = dict(zip(batch["masked_rows"], batch["masked_targets"]))
    for s in range(count):
        for row in range(batch["starts"][s], batch["starts"][s + 1]):
            column = row - batch["starts"][s]
            arrays["input_ids"][s, column] = batch["tokens"][row]
            arrays["token_type_ids"][s, column] = batch["segments"][row]
            arrays["attention_mask"][s, column] = 1
            if row in targets:
                labels[s, column] = targets[row]
    return dict(arrays, labels=labels,
                next_sentence_label=torch.tensor(batch["next_sentence"]))


def build(config, activation, dtype):
    model = BertForPreTraining(BertConfig(hidden_act=activation, **config))
    model.tie_weights()
    fill(model)
    return model.to(dtype).train()


def adamw(model):
    decayed = [p for n, p in model.named_parameters()
               if "bias" not in n and "LayerNorm" not in n]
    others = [p for n, p in model.named_parameters() if "bias" in n or "LayerNorm" in n]
    settings = dict(ADAMW)
    decay = settings.pop("weight_decay")
    return torch.optim.AdamW([dict(params=decayed, weight_decay=decay),
                              dict(params=others, weight_decay=0.0)], **settings)


def gradients_of(config, activation, dtype, batch):
    model = build(config, activation, dtype)
    output = model(**padded(batch))
    output.loss.backward()
    return output.loss.item(), {n: p.grad.double().numpy() for n, p in model.named_parameters()}


def exact_gradients(config, activation, batch):
    loss, exact = gradients_of(config, activation, torch.float64, batch)
    loss32, single = gradients_of(config, activation, torch.float32, batch)
    # The gradient of a key bias is zero, because softmax is invariant to a constant in all scores.
    worst = max(np.linalg.norm(single[n] - g) / np.linalg.norm(g) for n, g in exact.items()
                if "key.bias" not in n)
    print(f"{activation}: loss {loss:.9f}, the oracle's own f32 differs by "
          f"{abs(loss32 - loss) / loss:.1e}, worst gradient {worst:.1e}")
    return loss, exact


def write_gradients(folder, activation, batch):
    loss, exact = exact_gradients(CONFIG, activation, batch)
    names = sorted(exact)
    data = np.concatenate([exact[n].astype("<f4").ravel() for n in names])
    (folder / f"{activation}.f32").write_bytes(data.tobytes())
    return dict(loss=loss, names=names, elements=[int(exact[n].size) for n in names])


def projected_gradients(activation, batch):
    loss, exact = exact_gradients(WIDE, activation, batch)
    tensors = {}
    for name, gradient in sorted(exact.items()):
        flat = gradient.ravel()
        tensors[name] = dict(norm=float(np.linalg.norm(flat)), products=[
            float(flat @ hashed(f"{name}#{index}", flat.size)) for index in range(PROJECTIONS)])
    return dict(config=WIDE, batch=batch, activation=activation, loss=loss, tensors=tensors)


def classification(batch):
    """Computes logits, and the loss and the classifier's gradient for each problem type."""
    count = len(batch["starts"]) - 1
    rng = np.random.default_rng(3000)
    labels = dict(
        single_label_classification=torch.from_numpy(rng.integers(0, 3, count)),
        multi_label_classification=torch.from_numpy(rng.integers(0, 2, (count, 3)).astype(float)),
        regression=torch.from_numpy(rng.normal(size=(count, 3))))
    inputs = {k: v for k, v in padded(batch).items() if k not in ("labels", "next_sentence_label")}
    problems = {}
    for problem, targets in labels.items():
        model = BertForSequenceClassification(
            BertConfig(num_labels=3, problem_type=problem, **CONFIG))
        fill(model)
        output = model.double().train()(**inputs, labels=targets)
        output.loss.backward()
        problems[problem] = dict(targets=targets.flatten().tolist(), loss=output.loss.item(),
                                 gradient=model.classifier.weight.grad.flatten().tolist())
    return dict(config=CONFIG, batch=batch, logits=output.logits.flatten().tolist(),
                problems=problems)


def tagging(batch):
    """Computes logits of every second row, the loss, and gradients of the head and of a layer."""
    rows = list(range(0, len(batch["tokens"]), 2))
    tags = np.random.default_rng(4000).integers(0, 5, len(rows)).tolist()
    inputs = padded(dict(batch, masked_rows=rows, masked_targets=tags))
    labels = inputs.pop("labels")
    del inputs["next_sentence_label"]
    model = BertForTokenClassification(BertConfig(num_labels=5, **CONFIG))
    fill(model)
    output = model.double().train()(**inputs, labels=labels)
    output.loss.backward()
    named = dict(model.named_parameters())
    names = ("classifier.weight", "classifier.bias",
             "bert.encoder.layer.1.output.dense.weight", "bert.embeddings.LayerNorm.weight")
    return dict(config=CONFIG, batch=batch, tagged_rows=rows, tags=tags,
                logits=output.logits[labels != -100].flatten().tolist(), loss=output.loss.item(),
                gradients={n: named[n].grad.flatten().tolist() for n in names})


def losses_of(activation, batches):
    model = build(CONFIG, activation, torch.float64)
    optimizer = adamw(model)
    losses = []
    for step in range(STEPS):
        output = model(**padded(batches[step % len(batches)]))
        optimizer.zero_grad()
        output.loss.backward()
        optimizer.step()
        losses.append(output.loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    batches = [make_batch(1000 + index, lengths, CONFIG["vocab_size"])
               for index, lengths in enumerate(LENGTHS)]
    golden = dict(config=CONFIG, adamw=ADAMW, batches=batches)
    for activation in ("gelu", "gelu_new"):
        golden[activation] = dict(write_gradients(folder, activation, batches[0]),
                                  losses=losses_of(activation, batches))
    wide = make_batch(2000, WIDE_LENGTHS, WIDE["vocab_size"])
    golden["wide"] = projected_gradients("gelu", wide)
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    (folder / "classification.json").write_text(json.dumps(classification(batches[0])) + "\n")
    (folder / "tagging.json").write_text(json.dumps(tagging(batches[0])) + "\n")


if __name__ == "__main__":
    main()
