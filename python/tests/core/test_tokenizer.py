"""Tokens, their places in a Python text, and back."""

import json
import pathlib

import numpy as np
import pytest

import onebit
from conftest import onebit as program, write

GOLDENS = pathlib.Path(__file__).parents[3] / "tests/formats/golden/pipelines"


@pytest.fixture(scope="module")
def tokenizer(pretrained):
    return onebit.Tokenizer(pretrained)


def test_ids_equal_the_programs(folder, pretrained, tokenizer):
    text = "The cat sat on Old trees, near: green rivers!"
    line = program("tokenize", "--vocab", pretrained, write(folder / "line.txt", text + "\n"))
    ids, ranges = tokenizer.encode(text)
    assert ids.dtype == ranges.dtype == np.int32 and ranges.shape == (len(ids), 2)
    assert ids.tolist() == [int(word) for word in line.split()]
    assert text[slice(*ranges[1])] == "cat"


# Ranges are of code points, as Python counts: é is one, and also 𝄞 that UTF-8 has in four bytes.
@pytest.mark.parametrize("text", ["the cât sat", "ca\u0301t the\u00a0cat", "𝄞 cat 𝄞𝄞 sat", "東京 cat", ""])
def test_ranges_are_of_code_points(tokenizer, text):
    ids, ranges = tokenizer.encode(text)
    assert len(ids) == len(ranges)
    for id, (begin, end) in zip(ids, ranges):
        assert 0 <= begin < end <= len(text)
        piece, token = text[begin:end], tokenizer.token(id)
        if piece == "cat":
            assert token == "cat" or not token.startswith("##")
        assert piece.strip() == piece and piece
    if "cat" in text:
        place = text.index("cat")
        assert [place, place + 3] == [ranges[:, 0].max(initial=0), place + 3] or \
            place in ranges[:, 0]


def test_lists_and_batches(tokenizer):
    texts = ["the cat sat", "birds", ""]
    ids, ranges = tokenizer.encode(texts)
    assert len(ids) == len(ranges) == 3 and ids[2].shape == (0,) and ranges[2].shape == (0, 2)
    rows, mask = tokenizer.batch(texts)
    longest = 2 + max(len(one) for one in ids)
    assert rows.shape == mask.shape == (3, longest) and rows.dtype == mask.dtype == np.int64
    for row, one, kept in zip(rows, ids, mask):
        assert row[:len(one) + 2].tolist() == [tokenizer.id("[CLS]"), *one, tokenizer.id("[SEP]")]
        assert (row[len(one) + 2:] == tokenizer.id("[PAD]")).all()
        assert kept.sum() == len(one) + 2 and kept[:len(one) + 2].all()
    short, _ = tokenizer.batch(texts, max_length=3)
    assert short.shape == (3, 3) and short[0].tolist() == [rows[0][0], rows[0][1],
                                                            tokenizer.id("[SEP]")]
    assert tokenizer.batch([])[0].shape == (0, 0)


def test_decoding_joins_pieces(tokenizer):
    text = "the cat sat on a mat . walked home"
    assert tokenizer.decode(tokenizer.encode(text)[0]) == text.replace(" .", ".")
    rows, _ = tokenizer.batch(["the cat", "a"])
    assert tokenizer.decode(rows[1]) == "a"
    assert tokenizer.decode(rows[1], skip_special=False).startswith("[CLS] a [SEP]")
    assert tokenizer.decode([]) == ""
    with pytest.raises(onebit.Error, match=f"id {len(tokenizer)} "):
        tokenizer.decode([len(tokenizer)])
    with pytest.raises(onebit.Error, match="id -1"):
        tokenizer.token(-1)


def test_casing(folder):
    path = write(folder / "vocab.txt", "\n".join(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Ada", "ada"]) + "\n")
    assert onebit.Tokenizer(path, cased=True).encode("Ada")[0].tolist() == [5]
    assert onebit.Tokenizer(path, cased=False).encode("Ada")[0].tolist() == [6]
    assert onebit.Tokenizer(path, cased=True).cased
    with pytest.raises(onebit.Error, match="nowhere"):
        onebit.Tokenizer(folder / "nowhere")
    with pytest.raises(UnicodeEncodeError):
        onebit.Tokenizer(path).encode("\udc80")


# Byte pairs and Unigram: the goldens of `tokenizers`, whose offsets are bytes.
@pytest.mark.parametrize("kind", ["unigram", "bytes", "byte-fallback", "steps"])
def test_other_tokenizers(kind):
    tokenizer = onebit.Tokenizer(GOLDENS / kind / "tokenizer.json")
    for line in json.loads((GOLDENS / "lines.json").read_text())[:120]:
        ids, ranges = tokenizer.encode(line["text"])
        places = [len(line["text"][:place].encode()) for place in range(len(line["text"]) + 1)]
        listed = " ".join(f"{i}:{places[begin]}:{places[end]}"
                          for i, (begin, end) in zip(ids.tolist(), ranges.tolist()))
        assert listed == line[kind]
    for row in json.loads((GOLDENS / "decoded.json").read_text())["tokenizers"][kind]:
        assert tokenizer.decode(row["ids"], skip_special=False) == row["all"]
        assert tokenizer.decode(row["ids"]) == row["text"]
    with pytest.raises(onebit.Error, match="leave out whether text is cased"):
        onebit.Tokenizer(GOLDENS / kind / "tokenizer.json", cased=True)
