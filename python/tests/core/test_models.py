"""Models from Python give what the program gives, to the bit."""

import json
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import onebit
from conftest import onebit as program, sentence, write

TEXTS = [sentence(i, 3 + i % 6) for i in range(50)] + [""]


def processor_has(*flags):
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return any(set(flags) & set(line.split()) for line in lines if line.startswith("flags"))


@pytest.mark.parametrize("compute", ["f32", "bf16", "int8"])
def test_vectors_equal_the_programs(folder, pretrained, compute):
    if compute == "int8" and not processor_has("avx512_vnni", "avx_vnni", "amx_int8"):
        with pytest.raises(onebit.Error, match="VNNI"):
            onebit.Encoder(pretrained, compute=compute)
        return
    encoder = onebit.Encoder(pretrained, compute=compute, threads=1)
    write(folder / "texts.jsonl", "".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    program("embed", "encode", "-m", pretrained, "-i", folder / "texts.jsonl", "-o",
            folder / "vectors.npy", "--threads", 1, "--compute", compute)
    vectors = encoder.encode(TEXTS)
    assert vectors.dtype == np.float32 and vectors.shape == (len(TEXTS), encoder.dimensions)
    assert np.array_equal(vectors, np.load(folder / "vectors.npy"))
    exact = onebit.Encoder(pretrained, threads=1).encode(TEXTS)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(exact, axis=1)
    assert ((vectors * exact).sum(1) / lengths).min() > 0.99


def test_settings_of_an_encoder(pretrained):
    first = onebit.Encoder(pretrained, pooling="cls", normalize=True, threads=1)
    assert "length 1" in first.description
    assert np.allclose(np.linalg.norm(first.encode(TEXTS), axis=1), 1, atol=1e-6)
    both = onebit.Encoder(pretrained, pooling="cls+max", threads=1)
    assert both.dimensions == 2 * first.dimensions
    plain = onebit.Encoder(pretrained, pooling="cls", threads=1)
    assert np.allclose(both.encode(TEXTS)[:, :plain.dimensions], plain.encode(TEXTS), atol=1e-5)
    few = onebit.Encoder(pretrained, pooling="cls", normalize=True, dimensions=3, threads=1)
    wanted = plain.encode(TEXTS)[:, :3]
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    assert few.dimensions == 3 and np.allclose(few.encode(TEXTS), wanted, atol=1e-6)
    short = onebit.Encoder(pretrained, max_sequence_length=4, threads=1)
    short.encode([sentence(1, 8)])
    assert short.truncated == 1
    assert short.encode([]).shape == (0, short.dimensions)


def test_labels_equal_the_programs(folder, classifier):
    model = onebit.Classifier(classifier, threads=1)
    assert sorted(model.labels) == ["even", "odd"] and model.problem == "single_label_classification"
    write(folder / "unlabelled.tsv", "text\n" + "".join(f"{text}\n" for text in TEXTS[:50]))
    program("classify", "predict", "-m", classifier, "-i", folder / "unlabelled.tsv", "-o",
            folder / "predictions.jsonl", "--threads", 1)
    rows = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert model.predict(TEXTS[:50]) == [row["label"] for row in rows]
    assert model.logits(TEXTS[:3], TEXTS[3:6]).shape == (3, 2)


def test_tags_equal_the_programs(folder, tagger):
    model = onebit.Tagger(tagger, threads=1)
    sentences = [text.split() for text in TEXTS]
    write(folder / "words.jsonl",
          "".join(json.dumps({"tokens": words}) + "\n" for words in sentences[:50]))
    program("tag", "predict", "-m", tagger, "-i", folder / "words.jsonl", "-o",
            folder / "tags.jsonl", "--threads", 1)
    rows = [json.loads(line) for line in (folder / "tags.jsonl").read_text().splitlines()]
    tags = model.predict(sentences)
    assert tags[-1] == []
    assert tags[:50] == [row["tags"] for row in rows]


def test_masks_are_filled(pretrained):
    masks = onebit.FillMask(pretrained, threads=1).fill("the [MASK] sat on [MASK]", top=3)
    assert [len(mask) for mask in masks] == [3, 3]
    assert masks[0][0].probability >= masks[0][1].probability > 0


@pytest.mark.parametrize("texts, error, message", [
    ("one text", TypeError, "write \\[texts\\]"),
    ([1], TypeError, "texts\\[0\\]"),
    ([b"bytes"], TypeError, "texts\\[0\\]"),
    (None, TypeError, "iterable"),
    (["\ud800"], UnicodeEncodeError, "surrogates"),
])
def test_wrong_texts_are_errors(pretrained, texts, error, message):
    encoder = onebit.Encoder(pretrained, threads=1)
    with pytest.raises(error, match=message):
        encoder.encode(texts)
    assert encoder.encode(["again"]).shape == (1, encoder.dimensions)


def test_wrong_folders_and_settings_are_errors(folder, pretrained, classifier):
    with pytest.raises(onebit.Error, match="nowhere"):
        onebit.Encoder(folder / "nowhere")
    with pytest.raises(onebit.Error, match="compute"):
        onebit.Encoder(pretrained, compute="f8")
    with pytest.raises(onebit.Error, match="pooling"):
        onebit.Encoder(pretrained, pooling="median")
    with pytest.raises(onebit.Error, match="its vectors have"):
        onebit.Encoder(pretrained, dimensions=1 << 20)
    with pytest.raises(onebit.Error, match="threads"):
        onebit.Encoder(pretrained, threads=0)
    with pytest.raises(onebit.Error, match="batch_size"):
        onebit.Encoder(pretrained, batch_size=0)
    with pytest.raises(onebit.Error):
        onebit.Tagger(classifier)
    with pytest.raises(onebit.Error, match="2 texts and 1 text pairs"):
        onebit.Classifier(classifier).logits(["a", "b"], ["c"])


def test_threads_of_python_share_a_model(pretrained):
    encoder = onebit.Encoder(pretrained, threads=2)
    expected, results = encoder.encode(TEXTS), [None] * 4

    def work(place):
        results[place] = [encoder.encode(TEXTS) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(one, expected) for many in results for one in many)


# A worker of a data loader is a fork of a process that has computed on several threads.
def test_a_forked_child_computes(pretrained):
    encoder = onebit.Encoder(pretrained, threads=2)
    expected = encoder.encode(TEXTS)
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(60)
        os._exit(0 if np.allclose(encoder.encode(TEXTS), expected, atol=1e-5) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_importing_needs_neither_torch_nor_numpy():
    code = "import onebit, sys; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_example_finds_the_closest_text(folder, pretrained):
    path = write(folder / "lines.txt", "\n".join(TEXTS[:20]) + "\n")
    example = pathlib.Path(__file__).resolve().parents[3] / "examples/python/encode.py"
    done = subprocess.run([sys.executable, "-B", example, pretrained, TEXTS[7], path], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6 and lines[1] == f"1.000  {TEXTS[7]}"
