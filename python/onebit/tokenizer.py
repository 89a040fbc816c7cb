"""Text to the tokens of a model, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

from onebit import _core, arguments
from onebit.arguments import Folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Encoded = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
    EncodedTexts = tuple[list[npt.NDArray[np.int32]], list[npt.NDArray[np.int32]]]
    Padded = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


class Tokenizer:
    """The tokenizer of a model: WordPiece, byte pairs or Unigram, equal to that of transformers.

        >>> tokenizer = onebit.Tokenizer("model/")
        >>> ids, ranges = tokenizer.encode("Ada wrote it.")
    """

    def __init__(self, folder: Folder, *, cased: bool | None = None) -> None:
        """`folder` is a model, a run, a store, a tokenizer.json or a vocab.txt. `cased` says whether
        capitals and accents are kept: None means as the model does, or as the words show. Error:
        `cased` for a tokenizer other than WordPiece, which has rules of its own."""
        self.folder = arguments.path(folder, "folder")
        self._cased = arguments.maybe(arguments.flag, cased, "cased")
        self._tokenizer = _core.Tokenizer(self.folder, self._cased)

    @overload
    def encode(self, text: str) -> Encoded: ...
    @overload
    def encode(self, text: list[str] | tuple[str, ...]) -> EncodedTexts: ...

    def encode(self, text: str | list[str] | tuple[str, ...]) -> Encoded | EncodedTexts:
        """Returns the ids, i32 [n], and for each the range of the text that it stands for, i32
        [n, 2]: `text[begin:end]`. For a list of texts, returns a list of each. Adds no [CLS] and
        no [SEP]."""
        if isinstance(text, str):
            return self._tokenizer.encode(arguments.text(text, "text"))
        if not isinstance(text, (list, tuple)):
            raise TypeError(f"text must be a str or a list of them, not {arguments.kind(text)}")
        pairs = [self._tokenizer.encode(one) for one in arguments.texts(text, "text")]
        return [ids for ids, _ in pairs], [ranges for _, ranges in pairs]

    def batch(self, texts: Sequence[str], *, max_length: int = 512) -> Padded:
        """Returns the ids and the mask of the texts, each i64 [texts, longest]. Each row is [CLS],
        the tokens, [SEP], at most `max_length` of them, and [PAD], where the mask is 0."""
        return self._tokenizer.batch(
            arguments.texts(texts, "texts"), arguments.whole(max_length, "max_length"))

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Returns the text of the ids, as `tokenizers` decodes them. `skip_special` leaves out the
        special tokens, [UNK] and [MASK] included. Errors: an id that is not one, a decoder of
        tokenizer.json that onebit does not have."""
        numbers = arguments.elements(ids, "ids", "whole numbers")
        return self._tokenizer.decode(
            [arguments.whole(id, f"ids[{index}]") for index, id in enumerate(numbers)],
            arguments.flag(skip_special, "skip_special"))

    def __len__(self) -> int:
        """The number of ids."""
        return self._tokenizer.size

    def token(self, id: int) -> str:
        """The token of an id. Error: there is none."""
        return self._tokenizer.token(arguments.whole(id, "id"))

    def id(self, token: str) -> int | None:
        """The id of exactly this token, "##" included, or None."""
        return self._tokenizer.find(arguments.text(token, "token"))

    @property
    def cased(self) -> bool:
        """Whether capitals and accents are kept."""
        return self._tokenizer.is_cased

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.folder, self._cased)


def _reopened(folder: str, cased: bool | None) -> Tokenizer:
    return Tokenizer(folder, cased=cased)
