#!/usr/bin/env python3
"""Writes unicode_classes.cc, unicode_mapping.cc and unicode_lower_case.cc of onebit/data/text.

The tables define what Hugging Face's `tokenizers` (BertNormalizer, BertPreTokenizer) does with
every code point. The script runs the library itself, so that ids do not depend on the Unicode
version of the installed ICU. Needs a Python with `tokenizers`. Run it from anywhere.
"""

import pathlib

import tokenizers
from tokenizers import normalizers, pre_tokenizers

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "onebit" / "data" / "text"
HANGUL = range(0xAC00, 0xD7A4)
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ask():
    """Returns, by code point, the class without lower-casing, the uncased form, and the lower-cased
    form with accents."""
    cased = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    uncased = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
    accented = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    classes, lowered, kept = {}, {}, {}
    for c in CODE_POINTS:
        framed = f"a{chr(c)}b"
        clean = cased.normalize_str(framed)[1:-1]
        lowered[c] = uncased.normalize_str(framed)[1:-1].strip(" ")
        kept[c] = accented.normalize_str(framed)[1:-1].strip(" ")
        parts = len(splitter.pre_tokenize_str(framed))
        if clean == "":
            classes[c] = "dropped"
        elif clean == " ":
            classes[c] = "space"
        elif clean == f" {chr(c)} ":
            classes[c] = "ideograph"
        else:
            assert clean == chr(c), hex(c)
            classes[c] = "punctuation" if parts == 3 else "letter"
    return classes, lowered, kept


def nonstarters():
    """Returns code points that canonical ordering may move: their combining class is not zero."""
    nfd = normalizers.NFD()
    high, low = "\u0345", "\u0334"  # combining classes 240 and 1
    found = set()
    for c in CODE_POINTS:
        s = nfd.normalize_str(chr(c))[:1]
        if s and (nfd.normalize_str(f"a{high}{s}") == f"a{s}{high}"
                  or nfd.normalize_str(f"a{s}{low}") == f"a{low}{s}" != f"a{s}{low}"):
            found.add(c)
    return found


def ranges(code_points):
    result = []
    for c in sorted(code_points):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def runs_and_pairs(single):
    """Splits into runs of three or more (first, last, stride, target, target step) and pairs."""
    items, runs, pairs, i = sorted(single.items()), [], [], 0
    while i < len(items):
        first, target = items[i]
        best = 1
        for stride, step in ((1, 1), (2, 2), (1, 0), (2, 0)):
            n = 1
            while i + n < len(items) and items[i + n] == (first + n * stride, target + n * step):
                n += 1
            if n > best:
                best, run = n, (first, first + (n - 1) * stride, stride, target, step)
        if best >= 3:
            runs.append(run)
        else:
            pairs += items[i:i + best]
        i += best
    return runs, pairs


def array(kind, name, rows):
    cells = [", ".join(str(v) if v < 0 else f"0x{v:X}" for v in row) for row in rows]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + len(cell) + 4 > 100:
            lines.append(line)
            line = "   "
        line += " {" + cell + "},"
    lines.append(line)
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def source(text, header, body):
    return (f"// {text}\n// Written by tools/make_unicode_tables.py from tokenizers "
            f"{tokenizers.__version__}; do not edit.\n#include \"onebit/data/text/{header}\"\n\n"
            "namespace onebit::text {\n\n// clang-format off\nnamespace {\n\n" + body)


def write_mapping(name, text, function, forms, classes):
    """Writes the tables of the code points whose form is another, without those that end a word."""
    changed = {c: t for c, t in forms.items()
               if t != chr(c) and classes[c] not in ("dropped", "space")}
    runs, pairs = runs_and_pairs({c: ord(t) for c, t in changed.items() if len(t) == 1})
    longer = [[c] + [ord(x) for x in t] + [0] * (3 - len(t))
              for c, t in changed.items() if len(t) > 1]
    assert all(len(row) == 4 for row in longer)
    body = "\n".join([
        array("MappingRun", "kRuns", runs),
        array("MappingPair", "kPairs", pairs),
        array("MappingExpansion", "kExpansions", longer),
    ])
    body += "\n}  // namespace\n// clang-format on\n\n"
    for kind, plural in (("Run", "runs"), ("Pair", "pairs"), ("Expansion", "expansions")):
        body += (f"std::span<const Mapping{kind}> {function}_{plural}() {{\n"
                 f"  return k{kind}s;\n}}\n")
    body += "\n}  // namespace onebit::text\n"
    (FOLDER / name).write_text(source(text, "unicode_mapping.h", body))


def main():
    classes, lowered, kept = ask()
    marks = nonstarters()
    for c, text in lowered.items():  # the format assumes one class per normalised code point
        kinds = {classes[ord(x)] for x in text}
        assert len(kinds) <= 1, hex(c)
    for c, text in kept.items():  # and that lower-casing alone does not change it
        assert all(classes[ord(x)] == classes[c] for x in text), hex(c)

    of = lambda name: [c for c in CODE_POINTS if classes[c] == name]
    stripped = [c for c in CODE_POINTS if not lowered[c] and classes[c] == "letter"]
    becomes_punctuation = [c for c in CODE_POINTS if classes[c] == "letter" and lowered[c]
                           and classes[ord(lowered[c][0])] == "punctuation"]
    ordered = [c for c in marks if classes[c] == "letter" and lowered[c] == chr(c)]
    body = "\n".join([
        array("CodePointRange", "kSpaces", ranges(of("space"))),
        array("CodePointRange", "kDropped", ranges(of("dropped"))),
        array("CodePointRange", "kIdeographs", ranges(of("ideograph"))),
        array("CodePointRange", "kPunctuation", ranges(of("punctuation"))),
        array("CodePointRange", "kUncasedPunctuation", ranges(becomes_punctuation)),
        array("CodePointRange", "kStripped", ranges(stripped)),
        array("CodePointRange", "kOrderedMarks", ranges(ordered)),
    ])
    names = [("spaces", "kSpaces"), ("dropped", "kDropped"), ("ideographs", "kIdeographs"),
             ("punctuation", "kPunctuation"), ("uncased_punctuation", "kUncasedPunctuation"),
             ("stripped", "kStripped"), ("ordered_marks", "kOrderedMarks")]
    body += "\n}  // namespace\n// clang-format on\n\n"
    for function, name in names:
        body += f"std::span<const CodePointRange> {function}() {{\n  return {name};\n}}\n"
    body += "\n}  // namespace onebit::text\n"
    (FOLDER / "unicode_classes.cc").write_text(
        source("Classes of code points.", "unicode_classes.h", body))

    write_mapping(
        "unicode_mapping.cc",
        "Lower-casing, canonical decomposition and removal of accents, in one step.",
        "mapping", {c: t for c, t in lowered.items() if t and c not in HANGUL}, classes)
    write_mapping("unicode_lower_case.cc", "Lower-casing.", "lower_case", kept, classes)


if __name__ == "__main__":
    main()
