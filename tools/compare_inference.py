#!/usr/bin/env python3
"""Compares the speed and the vectors of `onebit embed encode` in f32, bf16 and int8, and beside
them other programs with the same sentence model.

  compare_inference.py PROGRAM MODEL_FOLDER XQUAD.json [--threads 1] [--rounds 5] [--rivals FOLDER]
      (numpy; for --rivals what is to be compared of onebit, sentence-transformers, onnxruntime,
      openvino with nncf, and ctranslate2, and tokenizers; to prepare them also torch, transformers
      and onnx)

MODEL_FOLDER is a sentence model, such as all-MiniLM-L6-v2 (check_sentence_vectors.py says where it
is), XQUAD.json a file of SQuAD's form. All programs take turns in every round, so that other work
on the machine slows down all programs. Times are user and system time, less the times of a run with
one text. They are medians over the rounds, and ratios are medians of the rounds' ratios. Use an idle
machine.

The types are compared by speed on paragraphs, on questions and on single questions (a batch of
one), by the peak of memory, by cosines with f32, and by hit@1: how often a question is nearest to
the paragraph it was asked about. Then f32 and int8 are compared again with the processor's bf16
switched off (ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI), as on processors that have none.

--rivals FOLDER adds onebit's Python package and sentence-transformers in f32 and bf16, and
onnxruntime, OpenVINO and CTranslate2 in f32 and int8. Other programs have the batch size that is
best for them. What is not installed is named and left out. FOLDER gets their copies of the model,
and may be kept for the next call.
Fails if int8's cosines or hit@1 are worse than onebit promises (docs/performance.md).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

LENGTH = 256  # tokens of a text
LEAST_COSINE, MEAN_COSINE, HIT_POINTS = 0.995, 0.997, 0.5


def read_xquad(path):
    """Paragraphs, questions, and the number of each question's paragraph."""
    paragraphs, questions, answers = [], [], []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            questions += [" ".join(one["question"].split()) for one in paragraph["qas"]]
            answers += [len(paragraphs)] * len(paragraph["qas"])
            paragraphs.append(" ".join(paragraph["context"].split()))
    return paragraphs, questions, numpy.array(answers)


class Onebit:
    """The program in one type. Every call is a process."""

    def __init__(self, given, compute, environment=None):
        self.name = "onebit " + compute + (", no bf16" if environment else "")
        self.given, self.compute = given, compute
        self.environment = {**os.environ, **(environment or {})}
        self.folder = tempfile.TemporaryDirectory()
        self.peak = 0
        self.batch = None

    def process(self, texts, batch):
        source, output = Path(self.folder.name, "texts.txt"), Path(self.folder.name, "v.npy")
        source.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
        process = subprocess.Popen(
            [self.given.program, "embed", "encode", "--model", self.given.model, "--input", source,
             "--output", output, "--device", "cpu", "--threads", str(self.given.threads),
             "--compute", self.compute, "--batch", str(batch), "--max-sequence-length",
             str(LENGTH), "--normalize", "--log-level", "error"], env=self.environment,
            stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{self.name}: `onebit embed encode` failed")
        self.peak = max(self.peak, used.ru_maxrss / 1024)
        return numpy.load(output), used.ru_utime + used.ru_stime

    def encode(self, texts, batch=32):
        start = self.process(texts[:1], batch)[1]
        vectors, seconds = self.process(texts, batch)
        return vectors, seconds - start


class Rival:
    """Another program's model, in a process of its own (rival_inference.py)."""

    def __init__(self, given, backend):
        self.name = backend
        self.batch = {}
        self.peak = 0
        self.process = subprocess.Popen(
            [sys.executable, "-B", Path(__file__).with_name("rival_inference.py"), "serve", backend,
             given.model, given.rivals, str(given.threads)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.folder = tempfile.TemporaryDirectory()
        if not self.process.stdout.readline():
            raise OSError(f"{backend} does not start")

    def encode(self, texts, batch=32):
        output = Path(self.folder.name, "v.npy")
        self.process.stdin.write(json.dumps([texts, batch, str(output)]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.peak = answer["peak"]
        return numpy.load(output), answer["seconds"]

    def tune(self, kind, texts):
        spent = {batch: min(self.encode(texts, batch)[1] for _ in range(2))
                 for batch in (1, 2, 4, 8, 32)}
        self.batch[kind] = min(spent, key=spent.get)


def measure(programs, texts_of, rounds):
    """{(kind, name): seconds of each round}, and the vectors of the last round."""
    seconds, vectors = {}, {}
    for turn in range(rounds):
        for kind, (texts, batch) in texts_of.items():
            for program in programs:
                own = batch or (program.batch or {}).get(kind, 32)
                vectors[kind, program.name], spent = program.encode(texts, own)
                seconds.setdefault((kind, program.name), []).append(spent)
        print(f"round {turn + 1} of {rounds}, load {os.getloadavg()[0]:.1f}", flush=True)
    return seconds, vectors


def ratio(slow, fast):
    return statistics.median(a / b for a, b in zip(slow, fast))


def print_speed(programs, texts_of, seconds, base):
    for kind, (texts, _) in texts_of.items():
        print(f"\n{kind}: {len(texts)} texts")
        for program in programs:
            spent = seconds[kind, program.name]
            print(f"  {program.name:24} {len(texts) / statistics.median(spent):8.1f} texts/s"
                  f"  {1000 * statistics.median(spent) / len(texts):7.3f} ms each"
                  f"  {ratio(seconds[kind, base], spent):5.2f} x {base}"
                  f"  ({min(spent):.3f} to {max(spent):.3f} s)  peak {program.peak:.0f} MB")


def cosines(ours, theirs):
    return ((ours * theirs).sum(1) / numpy.linalg.norm(ours, axis=1)
            / numpy.linalg.norm(theirs, axis=1))


def hits(questions, paragraphs, answers):
    return 100 * float(((questions @ paragraphs.T).argmax(1) == answers).mean())


def print_quality(programs, paragraphs, questions, answers):
    """Whether onebit's int8 keeps its promises."""
    vectors = {program.name: (program.encode(questions)[0], program.encode(paragraphs)[0])
               for program in programs}
    exact = vectors["onebit f32"]
    kept = True
    print("\nagainst onebit's f32        questions: least, mean    paragraphs: least, mean  hit@1")
    for program in programs:
        own = vectors[program.name]
        of_kinds = [cosines(mine, one) for mine, one in zip(own, exact)]
        points = hits(*own, answers)
        print(f"  {program.name:24} {of_kinds[0].min():.5f}, {of_kinds[0].mean():.5f}          "
              f"{of_kinds[1].min():.5f}, {of_kinds[1].mean():.5f}         {points:.1f} %")
        if program.name == "onebit int8":
            kept = (min(one.min() for one in of_kinds) >= LEAST_COSINE
                    and min(one.mean() for one in of_kinds) >= MEAN_COSINE
                    and abs(points - hits(*exact, answers)) <= HIT_POINTS)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model", type=Path)
    parser.add_argument("xquad", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rivals", type=Path, help="folder of the other programs' models")
    given = parser.parse_args()
    paragraphs, questions, answers = read_xquad(given.xquad)
    texts_of = {"paragraphs": (paragraphs[::2], None), "questions": (questions[::2], None),
                "single questions": (questions[::4], 1)}

    types = [Onebit(given, compute) for compute in ("f32", "bf16", "int8")]
    rivals = []
    if given.rivals:
        subprocess.run([sys.executable, "-B", Path(__file__).with_name("rival_inference.py"),
                        "prepare", "all", given.model, given.rivals, given.xquad], check=True)
        for backend in ("onebit.Encoder f32", "onebit.Encoder bf16", "sentence-transformers f32",
                        "sentence-transformers bf16", "onnxruntime f32", "onnxruntime int8", "openvino f32", "openvino bf16",
                        "openvino int8", "ctranslate2 f32", "ctranslate2 int8"):
            try:
                rivals.append(Rival(given, backend))
            except OSError as error:
                print(error)
        for rival in rivals:
            if rival.name.startswith("onebit"):  # has the program's
                continue
            for kind, (texts, batch) in texts_of.items():
                if batch is None:
                    rival.tune(kind, texts[:32])
            print(f"{rival.name}: best batches {rival.batch}", flush=True)
    programs = types + rivals
    kept = print_quality(programs, paragraphs, questions, answers)
    seconds, _ = measure(programs, texts_of, given.rounds)
    print_speed(programs, texts_of, seconds, "onebit f32")

    limit = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}
    limited = [Onebit(given, compute, limit) for compute in ("f32", "int8")]
    seconds, _ = measure(limited, texts_of, given.rounds)
    print_speed(limited, texts_of, seconds, "onebit f32, no bf16")
    sys.exit(not kept)


if __name__ == "__main__":
    main()
