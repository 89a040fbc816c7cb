#!/usr/bin/env python3
"""Compares onebit's windows, labels and answers with the published rules on whole SQuAD files.

    tools/check_squad_features.py --program build/onebit --model runs/squad \\
        xquad.en.json policyqa-dev.json.gz

The rules are squad_rules.py's with Hugging Face's `tokenizers`, and logits are the model's own.
Exits with 1 on any mismatch. Differences where onebit corrects a defect of the published programs
are counted separately: training examples that they skip although another answer is at its offset,
and answers whose text is not the one that their projection finds.
"""

import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

import check_tokenizer
import squad_rules as rules

OPTIONS = {"max_question_length": 64, "n_best": 20, "max_answer_length": 30}


def lines_of(command):
    done = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def by_question(lines):
    grouped = {}
    for line in lines:
        grouped.setdefault(line["id"], []).append(line)
    return grouped


class Check:
    def __init__(self, given, path, options):
        from squad_tokens import Tokens
        self.given, self.path, self.options = given, path, options
        vocab = given.model / "vocab.txt"
        self.names = vocab.read_text().split("\n")
        self.tokens = Tokens(vocab, cased=False)
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as file:
            self.questions = list(rules.questions_of(json.load(file)))
        self.counts = dict.fromkeys(
            ["windows", "window mismatches", "label mismatches", "skipped by the published rule",
             "candidates", "candidate mismatches", "texts by offsets that differ"], 0)

    def program(self, *arguments):
        return [self.given.program, "squad", *arguments, "--model", self.given.model,
                "--max-sequence-length", self.options["max_sequence_length"],
                "--doc-stride", self.options["doc_stride"]]

    def report(self, kind, question, mine, right):
        self.counts[kind] += 1
        if self.counts[kind] <= 5:
            print(f"{kind}: {question}\n  rules  {right!r}\n  onebit {mine!r}")

    def windows(self):
        found = by_question(lines_of(self.program("windows", "--training", self.path)))
        for context, question in self.questions:
            features = rules.Features(self.tokens.pieces, context, question["question"],
                                      self.options)
            answer = question["answers"][0]
            words = rules.answer_in_words(features.words, features.word_at, answer)
            if words is None:
                self.counts["skipped by the published rule"] += 1
                continue
            span = features.answer_pieces(self.tokens.pieces, *words, answer["text"])
            mine = found.get(question["id"], [])
            right = range(len(features.windows))
            if len(mine) != len(right):
                self.report("window mismatches", question["id"], len(mine), len(right))
                continue
            for window, line in zip(right, mine):
                self.counts["windows"] += 1
                tokens = features.tokens(window)
                contexts = "".join(str(int(features.max_context(window, i)))
                                   for i in range(len(tokens)))
                here = ([self.names[i] for i in line["tokens"]], line["max_context"])
                if here != (tokens, contexts):
                    self.report("window mismatches", question["id"], here, (tokens, contexts))
                label = list(features.label(window, span) or (0, 0))
                if line["label"] != label:
                    self.report("label mismatches", question["id"], line["label"], label)

    def answers(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, extra in (("projection", ["--projection"]), ("offsets", [])):
                command = self.program("predict", "--input", self.path, "--output",
                                       folder / f"{name}.json", "--n-best-output",
                                       folder / f"{name}_nbest.json", "--logits",
                                       folder / "logits.jsonl", *extra)
                subprocess.run([str(c) for c in command], check=True, capture_output=True)
            load = lambda name: json.loads((folder / name).read_text())
            projected, by_offsets = load("projection_nbest.json"), load("offsets.json")
            predictions = load("projection.json")
            with open(folder / "logits.jsonl", encoding="utf-8") as file:
                logits = by_question(map(json.loads, file))
        for context, question in self.questions:
            i = question["id"]
            features = rules.Features(self.tokens.pieces, context, question["question"],
                                      self.options)
            right = rules.n_best(features, [(w["start"], w["end"]) for w in logits[i]],
                                 self.options, self.tokens.words)
            mine = [(c["text"], c["probability"], c["start_logit"], c["end_logit"])
                    for c in projected[i]]
            self.counts["candidates"] += len(right)
            if mine != right or predictions[i] != right[0][0]:
                self.report("candidate mismatches", i, mine[:3], right[:3])
            self.counts["texts by offsets that differ"] += by_offsets[i] != predictions[i]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--model", required=True, type=pathlib.Path,
                        help="fine-tuned folder with an uncased vocab.txt")
    parser.add_argument("--venv", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "onebit-oracles")
    parser.add_argument("--max-sequence-length", type=int, nargs="+", default=[384, 128])
    parser.add_argument("--doc-stride", type=int, nargs="+", default=[128, 40])
    parser.add_argument("data", nargs="+", type=pathlib.Path)
    given = parser.parse_args()
    check_tokenizer.ensure_packages(given.venv)
    bad = 0
    for path in given.data:
        for length, stride in zip(given.max_sequence_length, given.doc_stride):
            options = OPTIONS | {"max_sequence_length": length, "doc_stride": stride}
            check = Check(given, path, options)
            check.windows()
            check.answers()
            bad += sum(n for name, n in check.counts.items() if name.endswith("mismatches"))
            print(f"{path.name}, {length}/{stride}: {len(check.questions)} questions, "
                  + ", ".join(f"{name} {n}" for name, n in check.counts.items()))
    print(f"mismatches = {bad}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
