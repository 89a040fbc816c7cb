"""Trained models from their folders: texts in, numpy arrays out.

A folder is one of Hugging Face's, a checkpoint of onebit, or the folder of a run, whose latest
checkpoint is then used. Every model computes without Python's lock. One object makes one call at a
time, whichever threads call it. `threads` is the number of cores that a call uses, by default all.
`compute` is "f32", "bf16" (on processors with bf16 instructions about twice as fast), "int8" (on
processors with VNNI faster still, and less exact) or "auto", the type of the device. Errors in folders and texts are `onebit.Error`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from onebit import _core, arguments
from onebit.arguments import Folder

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]

class Encoder:
    """Turns texts into vectors whose inner products or cosines compare their meanings.

    A setting that is not given comes from the folder (the files of sentence-transformers). If the
    folder has none, the vector is the mean of all tokens, not normalized, without a prompt.
    """

    def __init__(
        self,
        folder: Folder,
        *,
        max_sequence_length: int | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        dimensions: int | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        compute: str = "f32",
        threads: int | None = None,
    ) -> None:
        """Loads the model. `pooling` is "mean", "cls" or another word of sentence-transformers, or
        several joined by "+". `dimensions` keeps the first numbers of each vector, which is then
        normalized. `prompt` is the name of one of the folder's prompts (`prompt_names`), or the
        text itself."""
        self._model = _core.Encoder(
            arguments.path(folder, "folder"),
            arguments.maybe(arguments.whole, max_sequence_length, "max_sequence_length"),
            arguments.maybe(arguments.text, pooling, "pooling"),
            arguments.maybe(arguments.flag, normalize, "normalize"),
            arguments.maybe(arguments.whole, dimensions, "dimensions"),
            arguments.maybe(arguments.text, prompt, "prompt"),
            arguments.whole(batch_size, "batch_size"), arguments.text(compute, "compute"),
            arguments.maybe(arguments.small, threads, "threads"))

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Returns the vectors, f32 [texts, `dimensions`]."""
        return self._model.encode(arguments.texts(texts, "texts"))

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._model.dimensions

    @property
    def description(self) -> str:
        """The settings in words, for example "mean of at most 128 tokens, length 1"."""
        return self._model.description

    @property
    def prompt_names(self) -> list[str]:
        """The names of the folder's prompts."""
        return self._model.prompt_names

    @property
    def truncated(self) -> int:
        """The number of texts so far that were longer than the limit and were cut."""
        return self._model.truncated


class Classifier:
    """Labels texts, or pairs of texts."""

    def __init__(
        self,
        folder: Folder,
        *,
        max_sequence_length: int | None = None,
        batch_size: int = 32,
        compute: str = "f32",
        threads: int | None = None,
    ) -> None:
        """Loads the model. Texts of more than `max_sequence_length` tokens, by default the length
        of the model's run, or as many as another program's model reads, are cut. `batch_size`
        texts are computed at once."""
        self._model = _core.Classifier(
            arguments.path(folder, "folder"),
            arguments.maybe(arguments.whole, max_sequence_length, "max_sequence_length"),
            arguments.whole(batch_size, "batch_size"), arguments.text(compute, "compute"),
            arguments.maybe(arguments.small, threads, "threads"))

    def logits(self, texts: Sequence[str], text_pairs: Sequence[str] | None = None) -> Matrix:
        """Returns the model's outputs, f32 [texts, labels]. A model of regression has one."""
        pairs = None if text_pairs is None else arguments.texts(text_pairs, "text_pairs")
        return self._model.logits(arguments.texts(texts, "texts"), pairs)

    def predict(self, texts: Sequence[str], text_pairs: Sequence[str] | None = None) -> list[str]:
        """Returns the most probable label of each text. Error: the model gives several labels to a
        text, or a number: use `logits`."""
        if self.problem != "single_label_classification":
            raise _core.Error(f"this model's problem is {self.problem}: use logits()")
        labels = self.labels
        return [labels[index] for index in self.logits(texts, text_pairs).argmax(axis=1)]

    @property
    def labels(self) -> list[str]:
        """The names of the outputs, in their order."""
        return self._model.labels

    @property
    def problem(self) -> str:
        """transformers' `problem_type`: "single_label_classification", "multi_label_classification"
        or "regression"."""
        return self._model.problem


class Tagger:
    """Gives every word of a sentence a tag."""

    def __init__(
        self,
        folder: Folder,
        *,
        max_sequence_length: int | None = None,
        stride: int | None = None,
        batch_size: int = 32,
        compute: str = "f32",
        threads: int | None = None,
    ) -> None:
        """Loads the model. A sentence that is longer than `max_sequence_length` is read in several
        windows, of which the next begins about `stride` tokens later. Both are those of the model's
        run by default, and without a run all positions and half of the length."""
        self._model = _core.Tagger(
            arguments.path(folder, "folder"),
            arguments.maybe(arguments.whole, max_sequence_length, "max_sequence_length"),
            arguments.maybe(arguments.whole, stride, "stride"),
            arguments.whole(batch_size, "batch_size"), arguments.text(compute, "compute"),
            arguments.maybe(arguments.small, threads, "threads"))

    def logits(self, sentences: Sequence[Sequence[str]]) -> list[Matrix]:
        """Returns f32 [words, labels] for every sentence, which is a list of words."""
        lists = arguments.elements(sentences, "sentences", "lists of words")
        words = [arguments.texts(sentence, f"sentences[{i}]") for i, sentence in enumerate(lists)]
        outputs, begin, parts = self._model.logits(words), 0, []
        for sentence in words:
            parts.append(outputs[begin:begin + len(sentence)])
            begin += len(sentence)
        return parts

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Returns the most probable tag of every word of every sentence."""
        labels = self.labels
        return [[labels[index] for index in outputs.argmax(axis=1)] if len(outputs) else []
                for outputs in self.logits(sentences)]

    @property
    def labels(self) -> list[str]:
        """The tags, in the order of the outputs."""
        return self._model.labels


class Answer(NamedTuple):
    """A span of a text that may answer a question. Without an answer the text is empty."""

    text: str
    probability: float
    start_logit: float
    end_logit: float


class QuestionAnswering:
    """Finds the answer to a question in a text (SQuAD)."""

    def __init__(self, folder: Folder, *, compute: str = "f32", threads: int | None = None) -> None:
        """Loads the model. Its windows, and whether it may abstain, are as in its training."""
        self._model = _core.QuestionAnswering(
            arguments.path(folder, "folder"), arguments.text(compute, "compute"),
            arguments.maybe(arguments.small, threads, "threads"))

    def answer(self, question: str, text: str, *, may_abstain: bool | None = None) -> str:
        """Returns the answer, a part of `text`, or "" if there is none. `may_abstain` says whether
        there may be none, by default as in the model's training."""
        return self._answer(question, text, may_abstain)[0]

    def candidates(self, question: str, text: str, *,
                   may_abstain: bool | None = None) -> list[Answer]:
        """Returns up to 20 different answers, the most probable first."""
        return [Answer(*best) for best in self._answer(question, text, may_abstain)[1]]

    def _answer(
        self, question: str, text: str, may_abstain: bool | None,
    ) -> tuple[str, list[tuple[str, float, float, float]]]:
        return self._model.answer(
            arguments.text(question, "question"), arguments.text(text, "text"),
            arguments.maybe(arguments.flag, may_abstain, "may_abstain"))


class Candidate(NamedTuple):
    """A token that may stand at a mask."""

    token: str
    id: int
    probability: float


class FillMask:
    """Predicts the tokens that are replaced by [MASK] in a text."""

    def __init__(self, folder: Folder, *, threads: int | None = None) -> None:
        """Loads the model. Error: it has no head that predicts words."""
        self._model = _core.FillMask(
            arguments.path(folder, "folder"), arguments.maybe(arguments.small, threads, "threads"))

    def fill(self, text: str, top: int = 5) -> list[list[Candidate]]:
        """Returns the `top` most probable tokens for every [MASK] of the text, in its order."""
        filled = self._model.fill(arguments.text(text, "text"), arguments.whole(top, "top"))
        return [[Candidate(*best) for best in mask] for mask in filled]
