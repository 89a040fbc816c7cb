#!/usr/bin/env python3
"""Writes tests/tag/golden: scores.json contains tags and seqeval's scores of them in both its
modes, encoding.json how Hugging Face's `tokenizers` splits words of pre-split text, with the
vocabulary in tests/text/golden.

    pip install seqeval tokenizers
    tools/make_tag_goldens.py tests/tag/golden
"""

import argparse
import json
import pathlib
import random
import warnings

from seqeval import metrics, scheme
from seqeval.metrics import v1
from tokenizers import BertWordPieceTokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMES = {"iob1": scheme.IOB1, "iob2": scheme.IOB2, "iobes": scheme.IOBES,
           "ioe1": scheme.IOE1, "ioe2": scheme.IOE2}
TYPES = ["LOC", "PER", "MISC-x"]
# Ordinary words, and words that normalisation removes or splits.
WORDS = ["The", "old", "king's", "unbelievably", "Zürich", "don't", "U.S.", "e\u0301tude", "\u0301",
         "\u200d", "漢字", "can-not", "3.14", "...", "O'Neill", "[MASK]", "ﬁre", "\u00ad", "a" * 120,
         "naïve", "\ufffd", "river", "'", "x\u00a0y"]


def well_formed(rng, name, words):
    """Returns tags of random entities in the given scheme."""
    tags, last = [], None
    while len(tags) < words:
        size = min(rng.choice([1, 1, 2, 3]), words - len(tags))
        kind = rng.choice([None, None, *TYPES])
        if kind is None:
            tags += ["O"] * size
        elif name == "iob1":
            tags += [("B-" if last == kind else "I-") + kind] + ["I-" + kind] * (size - 1)
        elif name == "iob2":
            tags += ["B-" + kind] + ["I-" + kind] * (size - 1)
        elif name == "ioe1":
            if last == kind:
                tags[-1] = "E-" + kind
            tags += ["I-" + kind] * size
        elif name == "ioe2":
            tags += ["I-" + kind] * (size - 1) + ["E-" + kind]
        elif size == 1:
            tags += ["S-" + kind]
        else:
            tags += ["B-" + kind] + ["I-" + kind] * (size - 2) + ["E-" + kind]
        last = kind
    return tags


def disturbed(rng, tags, labels, share):
    return [rng.choice(labels) if rng.random() < share else tag for tag in tags]


def report(truth, predicted, chosen=None):
    """Returns precision, recall, F1 and support, per type and overall."""
    if chosen is None:
        function, options = metrics.sequence_labeling.precision_recall_fscore_support, {}
    else:
        function, options = v1.precision_recall_fscore_support, {"scheme": chosen}
    columns = function(truth, predicted, average=None, **options)
    if chosen is None:
        names = sorted({kind for kind, _, _ in metrics.sequence_labeling.get_entities(truth)} |
                       {kind for kind, _, _ in metrics.sequence_labeling.get_entities(predicted)})
    else:
        names = sorted(scheme.Entities(truth, chosen).unique_tags |
                       scheme.Entities(predicted, chosen).unique_tags)
    by_label = {n: [float(v) for v in row] for n, row in zip(names, zip(*columns))}
    if not names:
        return by_label, [0.0, 0.0, 0.0], 0.0, 0.0
    micro = [float(v) for v in function(truth, predicted, average="micro", **options)[:3]]
    macro = float(function(truth, predicted, average="macro", **options)[2])
    weighted = float(function(truth, predicted, average="weighted", **options)[2])
    return by_label, micro, macro, weighted


def case(name, kind, truth, predicted):
    by_label, micro, macro, weighted = report(truth, predicted)
    strict_by_label, strict, _, _ = report(truth, predicted, SCHEMES[kind])
    figures = dict(f1=micro[2], precision=micro[0], recall=micro[1], f1_macro=macro,
                   f1_weighted=weighted, f1_strict=strict[2], precision_strict=strict[0],
                   recall_strict=strict[1],
                   accuracy=float(metrics.accuracy_score(truth, predicted)))
    return dict(name=name, scheme=kind, truth=truth, predicted=predicted, figures=figures,
                by_label=by_label, by_label_strict=strict_by_label)


def score_cases():
    rng = random.Random(15)
    cases = []
    for kind in SCHEMES:
        prefixes = "BIES" if kind == "iobes" else "IE" if kind.startswith("ioe") else "BI"
        labels = ["O"] + [f"{p}-{t}" for p in prefixes for t in TYPES]
        for share in (0.0, 0.1, 0.4, 1.0):
            truth = [well_formed(rng, kind, rng.randint(1, 12)) for _ in range(25)]
            predicted = [disturbed(rng, tags, labels, share) for tags in truth]
            cases.append(case(f"{kind}, {share} of the tags drawn", kind, truth, predicted))
        # Ill-formed truth.
        truth = [[rng.choice(labels) for _ in range(rng.randint(1, 9))] for _ in range(40)]
        predicted = [disturbed(rng, tags, labels, 0.3) for tags in truth]
        cases.append(case(f"{kind}, ill-formed", kind, truth, predicted))
        nothing = [["O"] * len(tags) for tags in truth]
        cases.append(case(f"{kind}, nothing predicted", kind, truth, nothing))
        cases.append(case(f"{kind}, nothing true", kind, nothing, predicted))
        bare = [[tag[0] for tag in tags] for tags in truth]
        cases.append(case(f"{kind}, without types", kind, bare,
                          [disturbed(rng, tags, ["O", *prefixes], 0.3) for tags in bare]))
    cases.append(case("nothing at all", "iob2", [["O", "O"]], [["O", "O"]]))
    return cases


def encodings():
    rows = []
    for lowercase in (True, False):
        tokenizer = BertWordPieceTokenizer(str(ROOT / "tests/text/golden/vocab.txt"),
                                           lowercase=lowercase)
        for word in WORDS:
            ids = tokenizer.encode([word], is_pretokenized=True, add_special_tokens=False).ids
            rows.append(dict(word=word, lowercase=lowercase, ids=ids))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    (folder / "scores.json").write_text(json.dumps({"cases": score_cases()}) + "\n")
    (folder / "encoding.json").write_text(json.dumps({"rows": encodings()}) + "\n")


if __name__ == "__main__":
    main()
