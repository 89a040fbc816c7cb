#!/usr/bin/env python3
"""Writes tests/text/golden/added_tokens.json: texts, and the ids and byte offsets that Hugging Face's
`tokenizers` gives them where tokens were added to BERT's tokenizer. Needs the package tokenizers."""

import json
import pathlib
import random

from tokenizers import AddedToken, Tokenizer

OUTPUT = pathlib.Path(__file__).parent.parent / "tests/text/golden/added_tokens.json"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = list("abcdeéxyz019-_.@[]<>/#京北") + ["ᄀ", "ᅡ", "ᆨ"]
PARTS = ["a", "b", "ab", "AB", "É", "e", "[", "]", "[E]", "<e>", " ", "  ", "\t", "京", "京北", "_",
         "각", "가", "x", "X", "xy", "Z9", "\u0301", "##a", "-", "@@", "\u3000", "ß", "İ", "ı"]
OTHERS = ["\u0301", "\u0327", "\u200b", "\u00a0", "\ufe0f", "ﬁ", "한", "\x0c", "\u302e", "\u0316"]


def tokenizer(vocabulary, lower_case):
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                  "strip_accents": None, "lowercase": lower_case}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 100,
             "vocab": {token: index for index, token in enumerate(vocabulary)}}
    return Tokenizer.from_str(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": normalizer, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None, "decoder": None, "model": model}))


def random_token():
    return AddedToken("".join(random.choice(PARTS) for _ in range(random.randrange(1, 4))),
                      single_word=random.random() < 0.3, lstrip=random.random() < 0.3,
                      rstrip=random.random() < 0.3, normalized=random.random() < 0.5,
                      special=random.random() < 0.3)


def case(vocabulary):
    lower_case = random.random() < 0.7
    made = tokenizer(vocabulary, lower_case)
    made.add_special_tokens(SPECIAL)
    tokens = {}
    while len(tokens) < 6:
        token = random_token()
        if made.normalizer.normalize_str(token.content):
            tokens.setdefault(token.content, token)
    made.add_tokens(list(tokens.values()))
    pool = PARTS + OTHERS + SPECIAL + [t for token in tokens for t in (token, token.upper())] * 3
    texts = []
    for _ in range(30):
        text = "".join(random.choice(pool) for _ in range(random.randrange(1, 12)))
        try:
            found = made.encode(text, add_special_tokens=False)
        except BaseException:  # it fails where tokens with rstrip overlap
            continue
        starts = [0]
        for character in text:
            starts.append(starts[-1] + len(character.encode()))
        texts.append({"text": text, "ids": found.ids,
                      "offsets": [[starts[a], starts[b]] for a, b in found.offsets]})
    return {"lower_case": lower_case, "added_tokens": json.loads(made.to_str())["added_tokens"],
            "texts": texts}


def main():
    random.seed(4)
    vocabulary = list(dict.fromkeys(SPECIAL + LETTERS + ["##" + c for c in LETTERS] +
                                    ["ab", "##ab", "xy"]))
    golden = {"vocabulary": vocabulary, "cases": [case(vocabulary) for _ in range(12)]}
    OUTPUT.write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
