#!/usr/bin/env python3
"""Makes the example files of tests/samples/golden in the formats of the original programs.

    python3 -m venv venv && venv/bin/pip install h5py protobuf && venv/bin/python tools/make_sample_goldens.py

All files contain the same sixteen examples, and samples.json holds their meaning. h5py writes HDF5
with the names, types and filters of NVIDIA's create_pretraining_data.py, and with the lists of NVIDIA's
MLPerf submissions. TFRecords contain the messages of
tensorflow/core/example/{example,feature}.proto, serialized by protobuf. This script writes the
record framing (three lines, checked by the CRC-32C of RFC 3720). With --tensorflow (pip install
tensorflow-cpu), tensorflow's Example and TFRecordWriter also write the same examples, which must be
equal byte for byte.
"""
import gzip
import json
import random
import struct
import sys
from pathlib import Path

import h5py
import numpy
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

GOLDEN = Path(__file__).resolve().parents[1] / "tests/samples/golden"
LENGTH, PREDICTIONS = 24, 5
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CLS, SEP, MASK = 2, 3, 4
TOKENS = SPECIAL + [f"w{i}" for i in range(5, 60)]


def examples():
    """Returns examples like create_pretraining_data.py's: pairs with masked words and a label."""
    chance = random.Random(1)
    made = []
    for number in range(16):
        words = lambda count: [chance.randrange(5, len(TOKENS)) for _ in range(count)]
        first, second = words(chance.randrange(2, 9)), words(chance.randrange(2, 10))
        if number == 0:  # fills the whole length
            first, second = words(10), words(LENGTH - 13)
        tokens = [CLS] + first + [SEP] + second + [SEP]
        segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        places = [i for i, token in enumerate(tokens) if token not in (CLS, SEP)]
        count = PREDICTIONS if number == 0 else chance.randrange(1, PREDICTIONS)
        positions = sorted(chance.sample(places, min(count, len(places))))
        ids = [tokens[position] for position in positions]
        for position in positions:
            if chance.random() < 0.8:
                tokens[position] = MASK
            elif chance.random() < 0.5:
                tokens[position] = chance.randrange(5, len(TOKENS))
        made.append({"tokens": tokens, "segments": segments, "positions": positions, "ids": ids,
                     "next_sentence": number % 2})
    return made


def padded(values, length):
    return values + [0] * (length - len(values))


def columns(made):
    return {
        "input_ids": [padded(each["tokens"], LENGTH) for each in made],
        "input_mask": [padded([1] * len(each["tokens"]), LENGTH) for each in made],
        "segment_ids": [padded(each["segments"], LENGTH) for each in made],
        "masked_lm_positions": [padded(each["positions"], PREDICTIONS) for each in made],
        "masked_lm_ids": [padded(each["ids"], PREDICTIONS) for each in made],
        "next_sentence_labels": [each["next_sentence"] for each in made],
    }


TYPES = {"input_ids": "i4", "input_mask": "i1", "segment_ids": "i1", "masked_lm_positions": "i4",
         "masked_lm_ids": "i4", "next_sentence_labels": "i1"}


def write_hdf5(path, made, compression="gzip", types=TYPES, leave_out=()):
    with h5py.File(path, "w") as file:
        for name, values in columns(made).items():
            if name not in leave_out:
                file.create_dataset(name, data=numpy.array(values), dtype=types[name],
                                    compression=compression)


def write_half(path, made):
    """Writes two examples, the second one without its masked words."""
    with h5py.File(path, "w") as file:
        for name, values in columns(made[:2]).items():
            array = numpy.array(values, dtype=TYPES[name])
            dataset = file.create_dataset(name, array.shape, dtype=array.dtype, compression="gzip",
                                          chunks=(1, *array.shape[1:]))
            rows = 1 if name == "masked_lm_ids" else 2
            dataset[:rows] = array[:rows]


def write_lists(path, made):
    """Writes the variable-length layout: no padding, no input_mask."""
    lists = {"input_ids": ("tokens", "i2"), "segment_ids": ("segments", "i1"),
             "masked_lm_positions": ("positions", "i2"), "masked_lm_ids": ("ids", "i2")}
    with h5py.File(path, "w") as file:
        for name, (key, kind) in lists.items():
            array = file.create_dataset(name, (len(made),), dtype=h5py.vlen_dtype(numpy.dtype(kind)))
            for row, each in enumerate(made):
                array[row] = numpy.array(each[key], dtype=kind)
        labels = numpy.array([each["next_sentence"] for each in made], dtype="i1")
        file.create_dataset("next_sentence_labels", data=labels)


def example_class():
    """Returns the class tf.train.Example, built from the fields of its two proto files."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow",
                                              syntax="proto3")
    field_type = descriptor_pb2.FieldDescriptorProto

    def add(message, name, number, kind, type_name=None, repeated=False):
        field = message.field.add(name=name, number=number, type=kind, label=3 if repeated else 1)
        if type_name:
            field.type_name = ".tensorflow." + type_name
        return field

    for name, kind in (("BytesList", field_type.TYPE_BYTES), ("FloatList", field_type.TYPE_FLOAT),
                       ("Int64List", field_type.TYPE_INT64)):
        add(file.message_type.add(name=name), "value", 1, kind, repeated=True)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("bytes_list", "float_list", "int64_list"), 1):
        kind = {"bytes_list": "BytesList", "float_list": "FloatList", "int64_list": "Int64List"}[name]
        add(feature, name, number, field_type.TYPE_MESSAGE, kind).oneof_index = 0
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, field_type.TYPE_STRING)
    add(entry, "value", 2, field_type.TYPE_MESSAGE, "Feature")
    add(features, "feature", 1, field_type.TYPE_MESSAGE, "Features.FeatureEntry", repeated=True)
    example = file.message_type.add(name="Example")
    add(example, "features", 1, field_type.TYPE_MESSAGE, "Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


def serialized(each, Example):
    message = Example()
    feature = message.features.feature
    for name, values in columns([each]).items():
        value = values if name == "next_sentence_labels" else values[0]
        feature[name].int64_list.value.extend(value)
    weights = padded([1.0] * len(each["positions"]), PREDICTIONS)
    feature["masked_lm_weights"].float_list.value.extend(weights)
    return message.SerializeToString(deterministic=True)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def check_tensorflow(path, messages):
    import tensorflow
    with tensorflow.io.TFRecordWriter("/dev/shm/check.tfrecord") as writer:
        for message in messages:
            example = tensorflow.train.Example.FromString(message)
            if example.SerializeToString(deterministic=True) != message:
                sys.exit(f"{path}: tensorflow's Example has other bytes")
            writer.write(message)
    if Path("/dev/shm/check.tfrecord").read_bytes() != path.read_bytes():
        sys.exit(f"{path}: tensorflow writes other bytes")


def main():
    GOLDEN.mkdir(parents=True, exist_ok=True)
    made = examples()
    (GOLDEN / "vocab.txt").write_text("".join(token + "\n" for token in TOKENS))
    (GOLDEN / "samples.json").write_text(json.dumps(made, separators=(",", ":")).replace("},{", "},\n{") + "\n")
    write_hdf5(GOLDEN / "nvidia.hdf5", made)
    write_hdf5(GOLDEN / "int64.hdf5", made, compression=None, types={name: "i8" for name in TYPES})
    write_hdf5(GOLDEN / "lzf.hdf5", made[:2], compression="lzf")
    write_hdf5(GOLDEN / "no_labels.hdf5", made[:4], leave_out=("next_sentence_labels", "input_mask"))
    write_hdf5(GOLDEN / "no_ids.hdf5", made[:2], leave_out=("masked_lm_ids",))
    write_hdf5(GOLDEN / "floats.hdf5", made[:2], types=TYPES | {"segment_ids": "f4"})
    write_half(GOLDEN / "half.hdf5", made)
    write_lists(GOLDEN / "lists.hdf5", made)
    Example = example_class()
    messages = [serialized(each, Example) for each in made]
    records = b"".join(map(record, messages))
    (GOLDEN / "google.tfrecord").write_bytes(records)
    (GOLDEN / "google.tfrecord.gz").write_bytes(gzip.compress(records, mtime=0))
    if sys.argv[1:] == ["--tensorflow"]:
        check_tensorflow(GOLDEN / "google.tfrecord", messages)


if __name__ == "__main__":
    main()
