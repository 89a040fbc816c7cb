#!/usr/bin/env python3
"""Writes the seeds of ./run fuzz, OUT/<target>/*: the golden files and pieces of them.

Usage: make_fuzz_seeds.py OUT
"""
import base64
import json
import os
import pickle
import re
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


SIZES = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 16, "dtype": "float64"}
LABELS = {"numbers": {"id2label": {"0": 0, "1": True}}, "list": {"id2label": ["a", "b"]},
          "ids": {"label2id": {"a": 1, "b": "0"}}, "count": {"num_labels": 3}}


FAMILIES = "families.json"
TOKENIZER = ["vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
             "added_tokens.json"]
WORDS = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n"
ADDED = [
    (b'{"do_lower_case": true, "never_split": ["[UNK]"], "mask_token": "<m>"}', b"", b'{"<m>": 8}'),
    (b'{"do_lower_case": false, "added_tokens_decoder": {"8": {"content": "[E]", "lstrip": true,'
     b' "single_word": true, "normalized": true, "special": false}}}',
     b'{"additional_special_tokens": [{"content": "[E]", "lstrip": true}]}', b""),
]
SENTENCE_FOLDERS = [
    (b'[{"type": "sentence_transformers.models.Transformer", "path": ""}, {"path": "1_Pooling",'
     b' "type": "sentence_transformers.models.Pooling"}]',
     b'{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}',
     b'{"max_seq_length": 256, "do_lower_case": false}',
     b'{"prompts": {"query": "q: "}, "default_prompt_name": "query"}', b"", b""),
    (b'[{"type": "sentence_transformers.base.modules.transformer.Transformer"},'
     b' {"type": "sentence_transformers.x.Pooling", "path": "1_Pooling"},'
     b' {"type": "sentence_transformers.x.Normalize", "path": "2_Normalize"}]',
     b'{"embedding_dimension": 8, "pooling_mode": "mean", "include_prompt": true}',
     b'{"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"}',
     b'{"similarity_fn_name": "cosine", "model_type": "x"}', b'{"model_max_length": 64}', b""),
    (b'[{"type": "sentence_transformers.models.Transformer"},'
     b' {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},'
     b' {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]',
     b'{"pooling_mode": ["cls", "max"], "include_prompt": false}', b"{}", b'{"truncate_dim": 4}',
     b"", b'{"in_features": 4, "out_features": 2, "bias": false, "use_residual": true,'
     b' "activation_function": "torch.nn.modules.linear.Identity"}'),
]
# The first byte selects the format: CoNLL, CoNLL-U, JSON lines.
SENTENCES = [
    b"\0-DOCSTART- -X- O\n\nEU NNP I-ORG\nis VBZ O\n\nSt. NNP B-LOC\n",
    b"\0# global.columns = ID FORM NER\n\n1\tNew York\tS-LOC\n2\t\xc3\xa9\tO\r\n",
    b"\0# id 01\tdomain=en\nAnna _ _ B-PER\nflew _ _ O\n", b"\0word\ttag\nEU\tB_ORG\nrej\to\n",
    b"\1# text = Au\n1-2\tAu\t_\t_\t_\t_\t_\t_\t_\t_\n1\tb\tb\tADP\tP\t_\t3\tcase\t_\t_\n",
    b'\2{"tokens": ["In", "Rome"], "tags": ["O", "B-LOC"]}\n{"tokens": ["a"], "tags": ["O"]}\n',
    b'\2{"text": "\xc3\xa9l in Rome", "entities": [{"start": 0, "end": 2, "label": "P"},'
    b' [6, 10, "L"]]}\n',
]
# The first byte selects TSV, CSV, JSON lines.
RECORDS = [
    b"\0text\tlabel\na b\t1\nc\t2\n", b"\0anchor\tpositive\tscore\na\tb\t0.5\n", b"\3a\tb\nc\td\n",
    b'\1id,text,label\r\n1,"a ""b"", c\nd",x\r\n2,e,y\r\n',
    b'\2{"text": "a", "label": 3.0}\n{"text": "\\ud83d", "label": NaN}\n',
    b'\2{"query": "a", "positive": "b", "negative": "c"}\n',
    b"\0question\tsentence\tlabel\na\tb\t1\n",
]
DATA_JSON = [b'{"a": [NaN, -Infinity, 1e999, "\\ud83d x \\ud83d\\ude00"], "b": null}',
             b'[1, 2.5, "x"]']
RECIPES = [
    b'{"task": "pretrain", # a comment\n "run": {"steps": 5, /* no */ }, // yes\n "fp16": [1, 2,],}',
    b'{"a": "# , ] \\" //", "b": [[], {}]}',
]

# The first byte is the size of the pieces.
REQUESTS = [
    b"\7POST /embed HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n{\"inputs\": \"a\"}"
    b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"\0POST /rerank HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;x=y\r\n{\"tex\r\nA\r\nts\": [\"a\"]\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n",
    b'\0{"inputs": [["a", "b"], ["c"]], "truncate": true, "dimensions": 8, "encoding_format": "base64"}',
    b'\0{"inputs": [[1, 2.0], [3]], "texts": ["a"], "truncate": null}',
    b'\0{"inputs": {"source_sentence": "\\u00e9", "sentences": ["a"]}}',
]


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


def table_entry(key, value):
    """Returns an entry whose key shares nothing with the one before. The value is below 2 kB."""
    long = [len(value) & 127 | 128, len(value) >> 7]
    return bytes([0, len(key)] + ([len(value)] if len(value) < 128 else long)) + key + value


def safetensors_of(prefix):
    """Returns a file of two tensors whose names begin with a prefix."""
    header = json.dumps({
        prefix + name: {"dtype": "F32", "shape": [1, 1], "data_offsets": [4 * i, 4 * i + 4]}
        for i, name in enumerate(("bert.embeddings.word_embeddings.weight", "classifier.weight"))
    }).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8)


def sample_seeds():
    """Yields files of records (f) and single examples (e), as the first byte selects the reader."""
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


def folder_seeds():
    """Yields the files of folders, which end at zero bytes."""
    for name in ("bert",):
        folder = GOLDEN / name
        if (folder / "tokenizer_config.json").exists():
            yield "tokenizer", name, b"\0".join(
                (folder / file).read_bytes() if (folder / file).exists() else b""
                for file in TOKENIZER)
    for number, (config, specials, added) in enumerate(ADDED):
        yield "tokenizer", f"added_{number}", b"\0".join((WORDS, b"", config, specials, added))
    for number, files in enumerate(SENTENCE_FOLDERS):
        yield "sentence_folder", str(number), b"\0".join(files)


def components():
    """Yields small tokenizers as tokenizer.json describes them."""
    words = {token: i for i, token in enumerate(["<unk>", "a", "b", "\u2581", "\u0120", "ab", "##b"])}
    models = [
        {"type": "Unigram", "unk_id": 0, "vocab": [[token, -i / 2] for token, i in words.items()]},
        {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": words,
         "merges": ["a b"]},
        {"type": "WordPiece", "unk_token": "<unk>", "max_input_chars_per_word": 9, "vocab": words}]
    normalizers = [{"type": kind} for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase",
                                               "StripAccents")]
    normalizers += [
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": True,
         "strip_accents": None, "lowercase": True}]
    cuts = [{"type": kind} for kind in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")]
    cuts += [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
        {"type": "Punctuation", "behavior": "MergedWithPrevious"},
        {"type": "Digits", "individual_digits": True},
        {"type": "Split", "pattern": {"String": "b"}, "behavior": "Isolated", "invert": True}]
    added = [{"id": len(words), "content": " <s>", "single_word": True, "lstrip": True,
              "rstrip": True, "normalized": True, "special": False}]
    for i, normalizer in enumerate(normalizers):
        for model in models:
            parts = {"type": "Sequence", "normalizers": [normalizer, normalizers[i - 1]]}
            two = {"type": "Sequence", "pretokenizers": [cuts[i % len(cuts)], cuts[(i + 1) % len(cuts)]]}
            for cut in (cuts[i % len(cuts)], two):
                yield {"version": "1.0", "added_tokens": added, "normalizer": parts,
                       "pre_tokenizer": cut, "model": model, "decoder": None,
                       "post_processor": None}


def pipeline_seeds():
    """Yields tokenizer.json and a text, compiled maps of characters, vocabularies and a word."""
    text = " a\u0301b [MASK]<s>  12 \ufb01\u1100\u1161 \r\n\u00e9\u2581 x,b".encode() + b"\xff"
    for path in sorted((GOLDEN / "pipelines").glob("*/tokenizer.json")):
        yield "pipeline", path.parent.name, path.read_bytes() + b"\0" + text
        charsmap = re.search(r'"precompiled_charsmap":\s*"([^"]+)"', path.read_text())
        if charsmap:
            data = base64.b64decode(charsmap.group(1))
            size = struct.pack("<I", len(data))[:3]
            yield "character_map", path.parent.name, size + data + text
    for number, tokenizer in enumerate(components()):
        yield "pipeline", f"small_{number}", json.dumps(tokenizer).encode() + b"\0" + text
    for kind in range(3):
        tokens = b"\x09a\n\x0ab\n\x0cab\n\x0cabb\n\x10\xc3\xa9\n\x10#b\n\x0f#ab\n\x11ba\n"
        yield "subwords", str(kind), bytes([kind]) + tokens + b"abbab\xc3\xa9bzzab"


def family_seeds():
    """Yields configs of families of encoders, and files of small tensors with their names."""
    for name, golden in json.loads((GOLDEN / FAMILIES).read_text()).items():
        yield "json", name, json.dumps(golden["config"]).encode()
        lines = [" ".join([tensor] + [str(min(extent, 8)) for extent in extents])
                 for tensor, extents in golden["tensors"].items()]
        yield "families", name, json.dumps(golden["config"]).encode() + b"\0" + "\n".join(
            lines).encode()
        if not name.endswith("ForMaskedLM"):
            continue
        header, end = {}, 0
        for tensor, extents in golden["tensors"].items():
            shape = [12, 2][:len(extents)]
            size = 4 * shape[0] * (shape[1] if len(shape) == 2 else 1)
            header[tensor] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
            end += size
        text = json.dumps(header).encode()
        yield "safetensors", name, struct.pack("<Q", len(text)) + text + bytes(end)


def text_seeds():
    """Yields files of texts, tags and settings."""
    for target, contents in (("sentences", SENTENCES), ("records", RECORDS),
                             ("data_json", DATA_JSON), ("recipe", RECIPES), ("request", REQUESTS)):
        for number, content in enumerate(contents):
            yield target, str(number), content


def seeds():
    """Yields (target, name, content)."""
    yield from sample_seeds()
    yield from folder_seeds()
    yield from pipeline_seeds()
    yield from family_seeds()
    yield from text_seeds()
    for path in sorted(GOLDEN.rglob("*")):
        name = "_".join(path.relative_to(GOLDEN).parts)
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".safetensors":
            yield "safetensors", name, data
        elif path.suffix == ".json" and path.name != FAMILIES:
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
    # BundleEntryProto of more axes than a shape may have, and a slot of a variable.
    yield "tensor_bundle", "axes", b"e\0\0\2\x08\x01" + table_entry(
        b"x", b"\x08\x01\x12" + bytes([0x80, 8]) + b"\x12\x02\x08\x01" * 256 + b"\x28\x04")
    scalar = b"\x08\x01\x12\x00\x28\x04"
    yield "tensor_bundle", "slots", b"e\0\0\2\x08\x01" + b"".join(
        table_entry(key, scalar) for key in (b"a/bert/embeddings/word_embeddings",
                                             b"a/bert/embeddings/word_embeddings/Adam", b"b"))
    for name, prefix in (("prefix", "model._orig_mod."), ("other_model", "roberta.")):
        yield "safetensors", name, safetensors_of(prefix)
    for name, labels in LABELS.items():
        yield "json", "labels_" + name, json.dumps({**SIZES, **labels}).encode()
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
