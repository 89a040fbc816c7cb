#!/usr/bin/env python3
"""Writes tests/classify/golden/scores.json: labels, outputs of a model, and the scores that
scikit-learn and scipy compute from them, and how Hugging Face's `tokenizers` truncates pairs.

    pip install scikit-learn scipy tokenizers
    tools/make_classify_goldens.py tests/classify/golden
"""

import argparse
import json
import pathlib
import warnings

import numpy as np
from scipy import special, stats
from sklearn import metrics

THRESHOLD = 0.5


def f1(truth, predicted, average):
    return float(metrics.f1_score(truth, predicted, average=average, zero_division=0))


def by_label(truth, predicted, labels):
    columns = metrics.precision_recall_fscore_support(truth, predicted, labels=labels,
                                                      zero_division=0)
    return [[float(value) for value in row] for row in zip(*columns)]


def class_case(name, rng, classes, examples, skill, truth=None, constant=None):
    """Makes a case with one class of several, where `constant` is always predicted."""
    truth = rng.integers(0, classes, examples) if truth is None else np.array(truth)
    outputs = rng.normal(size=(examples, classes)).astype(np.float32) * 2
    outputs[np.arange(examples), truth] += np.float32(skill)
    if constant is not None:
        outputs[:, constant] += 1000
    predicted = outputs.argmax(axis=1)
    losses = special.logsumexp(outputs.astype(np.float64), axis=1) - outputs[np.arange(examples), truth]
    figures = dict(accuracy=float(metrics.accuracy_score(truth, predicted)),
                   f1_macro=f1(truth, predicted, "macro"), f1_micro=f1(truth, predicted, "micro"),
                   f1_weighted=f1(truth, predicted, "weighted"),
                   matthews=float(metrics.matthews_corrcoef(truth, predicted)),
                   loss=float(losses.mean()))
    if classes == 2:
        figures["f1"] = float(metrics.f1_score(truth, predicted, pos_label=1, zero_division=0))
    return dict(name=name, problem="single_label_classification", labels=classes,
                truth=truth.tolist(), outputs=outputs.ravel().tolist(), figures=figures,
                by_label=by_label(truth, predicted, range(classes)),
                confusion=metrics.confusion_matrix(truth, predicted, labels=range(classes)).tolist())


def label_case(name, rng, labels, examples, share):
    """Makes a case with any number of labels per example."""
    truth = (rng.random((examples, labels)) < share).astype(int)
    outputs = (rng.normal(size=truth.shape) + 1.5 * (2 * truth - 1)).astype(np.float32)
    exact = outputs.astype(np.float64)
    predicted = (special.expit(exact) > THRESHOLD).astype(int)
    losses = np.logaddexp(0, exact) - exact * truth
    figures = dict(f1_micro=f1(truth, predicted, "micro"), f1_macro=f1(truth, predicted, "macro"),
                   f1_weighted=f1(truth, predicted, "weighted"),
                   accuracy=float(metrics.accuracy_score(truth, predicted)),
                   loss=float(losses.mean()))
    return dict(name=name, problem="multi_label_classification", labels=labels,
                truth=truth.ravel().tolist(), outputs=outputs.ravel().tolist(), figures=figures,
                by_label=by_label(truth, predicted, range(labels)))


def number_case(name, rng, examples, noise, steps=None):
    """Makes a regression case, where `steps` rounds the numbers, which makes some equal."""
    truth = rng.random(examples) * 5
    outputs = truth + rng.normal(size=examples) * noise
    if steps:
        truth, outputs = np.round(truth * steps) / steps, np.round(outputs * steps) / steps
    truth, outputs = truth.astype(np.float32), outputs.astype(np.float32)
    x, y = outputs.astype(np.float64), truth.astype(np.float64)
    mse = float(metrics.mean_squared_error(y, x))
    figures = dict(pearson=float(stats.pearsonr(x, y).statistic),
                   spearman=float(stats.spearmanr(x, y).statistic), mse=mse, loss=mse)
    return dict(name=name, problem="regression", labels=1, truth=truth.tolist(),
                outputs=outputs.tolist(), figures=figures)


def cuts():
    """Returns rows [tokens of first, of second, limit of both, kept of first, kept of second]."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    rows = []
    for most in (1, 2, 5, 8, 9):
        tokenizer.enable_truncation(most, strategy="longest_first")
        for first in (0, 1, 2, 4, 5, 6, 9, 20):
            for second in (0, 1, 3, 4, 5, 7, 20):
                kept = tokenizer.encode(" ".join("a" * first), " ".join("b" * second)).ids
                rows.append([first, second, most, kept.count(0), kept.count(1)])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(7)
    cases = [
        class_case("two classes", rng, 2, 60, 1.5),
        class_case("no skill", rng, 2, 40, 0),
        class_case("five classes", rng, 5, 90, 2),
        class_case("a class is never seen", rng, 4, 30, 2, truth=[0, 1, 3] * 10),
        class_case("always the same class", rng, 3, 30, 0, constant=1),
        class_case("one class is true", rng, 2, 12, 0.5, truth=[1] * 12),
        class_case("all right", rng, 3, 20, 1000),
        class_case("one example", rng, 2, 1, 1),
        label_case("labels", rng, 4, 50, 0.3),
        label_case("rare labels", rng, 6, 25, 0.05),
        number_case("numbers", rng, 70, 0.8),
        number_case("equal numbers", rng, 70, 1.0, steps=2),
        number_case("close numbers", rng, 30, 1e-3),
    ]
    golden = dict(threshold=THRESHOLD, cases=cases, cuts=cuts())
    (folder / "scores.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
