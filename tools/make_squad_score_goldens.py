#!/usr/bin/env python3
"""Writes tests/squad/golden/scores.json: small sets of questions, predictions, and their scores by
the official rules (squad_rules.py).

    tools/make_squad_score_goldens.py [--official EVALUATE_V1 EVALUATE_V2]

With --official the official scripts evaluate-v1.1.py and evaluate-v2.0.py also score every case,
and their output must be the same text (except cases that lack a prediction, on which version 2.0
stops).
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import squad_rules as rules

FILE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "squad" / "golden"
ANSWERS = [
    ["Denver Broncos", "The Denver Broncos", "Broncos"], ["24\u201310"], ["gold", "the color gold"],
    ["Caf\u00e9 de la R\u00e9gence", "caf\u00e9"], ["\u0130stanbul"], ["\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03cc\u03c2"],
    ["an apple a day"], ["a"], ["U.S.", "United States of America"], ["\u201cquoted\u201d", "quoted"],
    ["\u6771\u4eac \u90fd", "\u6771\u4eac"], ["naive\u00a0Bayes", "naive Bayes"], ["x\u00b2 + 1"],
    ["\u00df and \u1e9e"], ["1,000,000", "1000000", "one million"], ["the the the", "a the"],
    ["don't", "do not"], ["\ud55c\uad6d\uc5b4"], ["\U0001f600 smile"], ["e\u0301tude", "\u00e9tude"],
    ["\u2014the\u2014end"], ["a\u0301 la carte"], ["under_score"], ["\u01c5ungla"],
]
OTHERS = {
    "normalised": ["the denver broncos!", "2410", "GOLD", "CAF\u00c9", "i\u0307stanbul", "\u03bf\u03b4\u03bf\u03c2", "apple day",
                   "", "us", "quoted", "\u6771\u4eac\u90fd", "naive bayes", "x\u00b2  1", "\u00df and \u00df", "1000000", "",
                   "dont", "\ud55c\uad6d\uc5b4", "smile", "\u00e9tude", "\u2014 \u2014end", "\u0301 la carte", "underscore",
                   "\u01c6ungla"],
    "partly right": ["Denver", "24", "color", "de la", "istanbul", "\u039f", "apple apple day", "an", "States", "quoted text",
                     "\u6771\u4eac", "Bayes naive", "x", "and", "million", "the", "not do", "\ud55c", "\U0001f600", "e",
                     "end", "carte", "score", "x"],
}


def dataset(impossible=()):
    qas = []
    for number, answers in enumerate(ANSWERS):
        qas.append({"id": f"q{number:02}", "question": "?", "answers": [
            {"text": text, "answer_start": 0} for text in answers]})
        if impossible:
            qas[-1]["is_impossible"] = number in impossible
            if number in impossible:
                qas[-1]["answers"] = []
    return {"version": "v2.0" if impossible else "1.1",
            "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": qas}]}]}


def prediction_sets():
    ids = [f"q{i:02}" for i in range(len(ANSWERS))]
    generator = random.Random(11)
    words = [w for answers in ANSWERS for a in answers for w in a.split()]
    sets = {name: dict(zip(ids, texts)) for name, texts in OTHERS.items()}
    sets["first answers"] = {i: a[0] for i, a in zip(ids, ANSWERS)}
    sets["last answers"] = {i: a[-1].upper() for i, a in zip(ids, ANSWERS)}
    sets["empty"] = dict.fromkeys(ids, "")
    sets["only articles and marks"] = dict.fromkeys(ids, "the -- an. (A)")
    sets["missing"] = {i: a[0] for i, a in list(zip(ids, ANSWERS))[::3]}
    sets["strangers"] = {"nobody": "x", "q00": "broncos"}
    for number in range(4):
        sets[f"random {number}"] = {
            i: " ".join(generator.choices(words, k=generator.randrange(0, 5))) for i in ids}
    return sets


def odds_for(predictions, step):
    """Returns odds with ties, numbers below 0 and above 1, and an unknown id."""
    generator = random.Random(step)
    odds = {i: round(generator.gauss(0, 1), step) for i in predictions}
    return odds | {"nobody": 0.5}


def cases():
    for name, predictions in prediction_sets().items():
        data = dataset()
        yield {"name": f"1.1 {name}", "rules": "1.1", "dataset": data, "predictions": predictions,
               "expected": rules.score_version1(data, predictions)}
        data = dataset(impossible={1, 4, 5, 11, 17, 20})
        yield {"name": f"2.0 {name}", "rules": "2.0", "dataset": data, "predictions": predictions,
               "expected": rules.score_version2(data, predictions)}
        for step, threshold in ((0, 1.0), (3, 0.25)):
            odds = odds_for(predictions, step)
            yield {"name": f"2.0 {name}, odds of {step} digits", "rules": "2.0", "dataset": data,
                   "predictions": predictions, "null_odds": odds, "threshold": threshold,
                   "expected": rules.score_version2(data, predictions, odds, threshold)}


def official_output(scripts, case, folder):
    paths = {}
    for name in ("dataset", "predictions", "null_odds"):
        paths[name] = folder / f"{name}.json"
        paths[name].write_text(json.dumps(case.get(name)))
    first = case["rules"] == "1.1"
    command = [sys.executable, scripts[0 if first else 1], paths["dataset"], paths["predictions"]]
    if "null_odds" in case:
        command += ["-n", paths["null_odds"], "-t", str(case["threshold"])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--official", nargs=2, metavar=("EVALUATE_V1", "EVALUATE_V2"))
    options = parser.parse_args()
    made = list(cases())
    compared = 0
    for case in made:
        first = case["rules"] == "1.1"
        case["printed"] = json.dumps(case.pop("expected"), indent=None if first else 2)
        ids = {question["id"] for _, question in rules.questions_of(case["dataset"])}
        if options.official and (first or ids <= set(case["predictions"])):
            with tempfile.TemporaryDirectory() as folder:
                official = official_output(options.official, case, pathlib.Path(folder))
            if official != case["printed"]:
                sys.exit(f"{case['name']}: the official script prints\n{official}\nnot\n"
                         f"{case['printed']}")
            compared += 1
    content = {"datasets": {"1.1": dataset(), "2.0": dataset({1, 4, 5, 11, 17, 20})},
               "cases": [{k: v for k, v in case.items() if k != "dataset"} for case in made]}
    FILE.mkdir(exist_ok=True)
    (FILE / "scores.json").write_text(json.dumps(content, indent=1) + "\n")
    print(f"{len(made)} cases, {compared} compared with the official scripts")


if __name__ == "__main__":
    main()
