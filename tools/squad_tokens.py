"""Wraps Hugging Face's `tokenizers` with the interface of the published SQuAD programs: pieces of a
word and words of the basic tokenizer, as text."""

import functools

from tokenizers import BertWordPieceTokenizer, normalizers, pre_tokenizers


class Tokens:
    def __init__(self, vocab, cased):
        self.tokenizer = BertWordPieceTokenizer(str(vocab), lowercase=not cased)
        self.normalizer = normalizers.BertNormalizer(lowercase=not cased)
        self.splitter = pre_tokenizers.BertPreTokenizer()
        self.pieces = functools.lru_cache(maxsize=None)(self.pieces)

    def pieces(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).tokens

    def words(self, text):
        return [word for word, _ in
                self.splitter.pre_tokenize_str(self.normalizer.normalize_str(text))]
