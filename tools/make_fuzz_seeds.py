#!/usr/bin/env python3
"""Writes the seeds of ./run fuzz, OUT/<target>/*: the golden files and pieces of them.

Usage: make_fuzz_seeds.py OUT
"""
import json
import os
import pickle
import struct
import sys
import zipfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "tests/formats/golden"
SAMPLES = Path(__file__).resolve().parents[1] / "tests/samples/golden"

SQUAD = {"version": "v2.0", "data": [{"title": "T", "paragraphs": [{
    "context": "The quick brown fox, aged 3, ate a caf\u00e9 au lait \U0001f98a.", "qas": [
        {"id": "1", "question": "Who ate?", "is_impossible": False,
         "answers": [{"text": "brown fox", "answer_start": 10}]},
        {"id": "2", "question": "Who slept?", "is_impossible": True, "answers": []},
        {"id": "2", "question": "What?", "answers": [{"text": "a cat", "answer_start": 99}]}]}]}]}


class Call:
    """Pickles as a call of a function."""

    def __reduce__(self):
        return os.system, ("true",)


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def blocks(table):
    """Returns the index block of a table and the raw content of its first data block."""
    def content(handle, at):
        offset, at = varint(handle, at)
        size, _ = varint(handle, at)
        return table[offset:offset + size]

    footer = table[-48:]
    at = varint(footer, varint(footer, 0)[1])[1]
    index = content(footer, at)
    _, at = varint(index, 0)
    own, at = varint(index, at)
    _, at = varint(index, at)
    return index, content(index, at + own)


def snappy_literal(data):
    """Returns the simplest compressed block: its length, then one literal."""
    assert 128 <= len(data) < 1 << 14
    return bytes([len(data) & 127 | 128, len(data) >> 7, 61 << 2]) + struct.pack(
        "<H", len(data) - 1) + data


def sample_seeds():
    """Yields files of records (f) and single examples (e); the first byte selects the reader."""
    for path in sorted(SAMPLES.glob("google.tfrecord*")):
        yield "tfrecord", path.name, b"f" + path.read_bytes()
    data = (SAMPLES / "google.tfrecord").read_bytes()
    at = 0
    while at < len(data):
        size = struct.unpack_from("<Q", data, at)[0]
        yield "tfrecord", f"example_{at}", b"e" + data[at + 12:at + 12 + size]
        at += size + 16
    for file in range(7):
        yield "sample_store", f"file_{file}", bytes([file]) + struct.pack("<8Q", *range(0, 32, 4))


def seeds():
    """Yields (target, name, content)."""
    yield from sample_seeds()
    for path in sorted(GOLDEN.rglob("*")):
        name = "_".join(path.relative_to(GOLDEN).parts)
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".safetensors":
            yield "safetensors", name, data
        elif path.suffix == ".json":
            yield "json", name, data
        elif path.suffix == ".index":
            yield "tensor_bundle", name, b"r" + data
        elif data.startswith(b"PK"):  # Python cannot read archives without checksums
            yield "torch_zip", name, data
            with zipfile.ZipFile(path) as archive:
                for entry in archive.namelist():
                    if entry.endswith("data.pkl") and "no_checksum" not in name:
                        yield "unpickler", name, archive.read(entry)
        elif data.startswith(b"\x80\x02\x8a\n"):
            yield "torch_stream", name, data
    plain = (GOLDEN / "bert_tensorflow/bert_model.ckpt.index").read_bytes()
    kinds = (GOLDEN / "kinds_tensorflow/kinds.index").read_bytes()
    for name, table in (("bert", plain), ("kinds", kinds)):
        data = blocks(table)[1]
        restarts = struct.unpack("<I", data[-4:])[0]
        yield "tensor_bundle", name + "_block", b"b" + data
        yield "tensor_bundle", name + "_entries", b"e" + data[:-4 * (restarts + 1)]
        yield "tensor_bundle", name + "_literal", b"s" + snappy_literal(data)
        yield "snappy", name, snappy_literal(data)
    yield "snappy", "copies", b"\x14\x0cabcd\x3d\x04"
    for protocol in (2, 3, 4, 5):
        yield "unpickler", f"call_{protocol}", pickle.dumps(Call(), protocol)
        yield "unpickler", f"plain_{protocol}", pickle.dumps(
            {"a": [1, (2, -3, 1 << 70)], "b": {4}, "c": b"d", "e": 1.5, "f": None}, protocol)
    yield "squad", "small", json.dumps(SQUAD).encode()


def main(out):
    for target, name, content in seeds():
        folder = Path(out) / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
