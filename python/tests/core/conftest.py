"""Small models that the program trains, once for all tests."""

import json
import os
import signal
import subprocess

import pytest

PROGRAM = os.environ["ONEBIT_PROGRAM"]
# Where the tests run in the background, the shell has them ignore Ctrl-C, and their children, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
WORDS = ("the cat sat on a mat and saw red birds in old trees near green rivers while many people "
         "walked home").split()


def onebit(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sentence(number, length=8):
    return " ".join(WORDS[(number * 7 + k * (number % 5 + 1)) % len(WORDS)] for k in range(length))


def write(path, text):
    path.write_text(text)
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def pretrained(folder):
    text = "".join(f"{sentence(i)}.\n" + ("\n" if i % 10 == 9 else "") for i in range(400))
    onebit("prepare", "-i", write(folder / "text.txt", text), "-o", folder / "store",
           "--vocab-size", 120)
    recipe = write(folder / "recipe.json", """{
        "task": "pretrain", "train_batch_size": 8,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "model": {"preset": "bert-tiny"},
        "data": {"sequence_length": 32}, "run": {"steps": 3}}""")
    onebit("pretrain", "-r", recipe, "-d", folder / "store", "-o", folder / "run", "--threads", 1)
    return folder / "run"


def fine_tuned(kind, folder, model, train):
    recipe = write(folder / f"{kind}.json", f"""{{
        "task": "{kind}", "train_batch_size": 8,
        "optimizer": {{"type": "AdamW", "params": {{"lr": 1e-3}}}}, "run": {{"steps": 3}}}}""")
    onebit(kind, "train", "-m", model, "-r", recipe, "--train", train, "-o", folder / kind,
           "--threads", 1)
    return folder / kind


def question(number):
    context = sentence(number, 12)
    word = context.split()[number % 12]
    return {"context": context, "qas": [{
        "id": str(number), "question": f"where is {word}",
        "answers": [{"text": word, "answer_start": context.index(word)}]}]}


def fine_tuning_files(folder, kind):
    """A file to train on and one to evaluate on."""
    if kind == "classify":
        text = "text\tlabel\n" + "".join(
            f"{sentence(i)}\t{'even' if i % 2 == 0 else 'odd'}\n" for i in range(40))
    elif kind == "tag":
        text = "\n\n".join(
            "\n".join(f"{word}\t{'N' if len(word) > 3 else 'O'}" for word in sentence(i).split())
            for i in range(40)) + "\n"
    elif kind == "squad":
        text = json.dumps({"version": "1.1", "data": [
            {"title": "birds", "paragraphs": [question(i) for i in range(40)]}]})
    else:
        text = "".join(json.dumps({"anchor": sentence(i), "positive": sentence(i + 1)}) + "\n"
                       for i in range(40))
    suffix = {"classify": "tsv", "tag": "tsv", "squad": "json", "embed": "jsonl"}[kind]
    return (write(folder / f"train_{kind}.{suffix}", text),
            write(folder / f"dev_{kind}.{suffix}", text))


@pytest.fixture(scope="session")
def classifier(folder, pretrained):
    return fine_tuned("classify", folder, pretrained, fine_tuning_files(folder, "classify")[0])


@pytest.fixture(scope="session")
def tagger(folder, pretrained):
    return fine_tuned("tag", folder, pretrained, fine_tuning_files(folder, "tag")[0])


@pytest.fixture(scope="session")
def all_models(folder, classifier, tagger, pretrained):
    """In `folder`: store, run, classify, tag, squad."""
    fine_tuned("squad", folder, pretrained, fine_tuning_files(folder, "squad")[0])
    return folder
