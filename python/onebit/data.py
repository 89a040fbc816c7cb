"""Stores of pre-training data, and the batches that a run makes of them.

`TokenStore` and `Batches` can be pickled, and used in the workers of a `DataLoader`, forked or
started anew: each process opens the files itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onebit import _core, arguments
from onebit.arguments import Folder, Overrides, Recipe

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.int32]
    Arrays = dict[str, npt.NDArray[Any]]


class TokenStore:
    """The documents of a store that `onebit prepare` made, read where they lie on disk.

        >>> store = onebit.TokenStore("store/")
        >>> len(store)                     # documents
        >>> store[0]                       # the sentences of the first one, each i32 [tokens]
    """

    def __init__(self, folder: Folder) -> None:
        """Opens the store. Errors: the folder is no store, an unfinished or damaged store, or a
        store of samples."""
        self.folder = arguments.path(folder, "folder")
        self._store = _core.TokenStore(self.folder)

    def __fspath__(self) -> str:
        return self.folder

    def __len__(self) -> int:
        """The number of documents."""
        return self._store.documents

    def __getitem__(self, index: int) -> list[Ids]:
        """The sentences of a document, i32 [tokens] each, not empty. IndexError: there is none."""
        place = arguments.whole(index, "index")
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(f"index {index}: the store has {len(self)} documents")
        ids, offsets = self._store.document(place)
        return [ids[begin:end] for begin, end in zip(offsets[:-1], offsets[1:])]

    def __iter__(self) -> Iterator[list[Ids]]:
        return (self[index] for index in range(len(self)))

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return self._store.sentences

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return self._store.tokens

    @property
    def manifest(self) -> dict[str, Any]:
        """The content of manifest.json: counts, casing, checksums, sources."""
        found: dict[str, Any] = json.loads(self._store.manifest)
        return found

    @property
    def vocabulary(self) -> list[str]:
        """The tokens, by their ids."""
        return self._store.vocabulary

    def verify(self) -> None:
        """Reads every byte. Error: a file differs from the checksum in the manifest."""
        self._store.verify()

    def batches(self, recipe: Recipe, **options: Any) -> Batches:
        """The batches of a pre-training of `recipe` on this store: `Batches` has the options."""
        return Batches(recipe, self.folder, **options)

    def __reduce__(self) -> tuple[type[TokenStore], tuple[str]]:
        return TokenStore, (self.folder,)


class Batches:
    """The micro-batches of a pre-training, the same as those that the program trains on.

    `batches[i]` is micro-step `i` of the run on this rank, counted over all steps: with an
    accumulation of 2, the first step has 0 and 1. A micro-batch depends on nothing but its number,
    so any process can make any of them, and a run is resumed with `range(first, len(batches))`.
    `torch.utils.data.DataLoader(batches, batch_size=None, num_workers=2)` gives them in order, and
    `sampler=range(first, len(batches))` resumes.

    A padded micro-batch is a dict of i64 arrays. B sequences are padded to the longest:

        input_ids, token_type_ids, attention_mask    [B, T], the padding is [PAD], 0, 0
        labels               [B, T], the masked token's id, and -100 where none is masked
        next_sentence_label  [B], 1 for a random second text (only with data.next_sentence)
        samples              [B], the number of each sequence in the run

    Without padding the sequences lie one behind the other, T tokens in all, as i32:

        input_ids, token_type_ids, position_ids      [T]
        sequence_starts                              [B + 1], the last one is T
        labelled_rows, row_labels                    [L], places of masked tokens, and their ids
    """

    def __init__(
        self,
        recipe: Recipe,
        stores: Folder | Sequence[Folder] | Mapping[Folder, float],
        *,
        overrides: Overrides | None = None,
        rank: int = 0,
        world: int = 1,
        padded: bool = True,
        threads: int = 1,
    ) -> None:
        """`stores` is one folder or TokenStore, several, or {folder: weight}, and `world` the number of ranks.
        `threads` are used while an epoch is cut. Errors: a faulty recipe, no store, a store of
        another vocabulary than the first."""
        given = arguments.recipe(recipe, overrides)
        self._given = (
            given.values(), arguments.weighted_paths(stores, "stores"),
            arguments.small(rank, "rank"), arguments.small(world, "world"),
            arguments.flag(padded, "padded"), arguments.small(threads, "threads"))
        self._open(given)

    def _open(self, recipe: _core.Recipe) -> None:
        _, stores, rank, world, _, threads = self._given
        self._batches = _core.Batches(recipe, stores, rank, world, threads)

    def __len__(self) -> int:
        """The number of micro-steps of the run on this rank."""
        return self.steps * self.accumulation

    def __getitem__(self, number: int) -> Arrays:
        """Micro-step `number`. IndexError: the run has no such micro-step."""
        place = arguments.whole(number, "number")
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(f"number {number}: the run has {len(self)} micro-steps")
        return self._batches.build(place, self._given[4])

    def __iter__(self) -> Iterator[Arrays]:
        return self.from_step(0)

    def from_step(self, step: int) -> Iterator[Arrays]:
        """The micro-batches from a step on: a run that has completed `step` steps continues here."""
        first = arguments.whole(step, "step")
        if not 0 <= first <= self.steps:
            raise _core.Error(f"step must be between 0 and {self.steps}, not {step}")
        return (self[number] for number in range(first * self.accumulation, len(self)))

    @property
    def steps(self) -> int:
        """The steps of the run."""
        return self._batches.steps

    @property
    def accumulation(self) -> int:
        """The micro-steps of a step."""
        return self._batches.accumulation

    @property
    def samples_per_step(self) -> int:
        """The sequences of a step on all ranks."""
        return self._batches.samples_per_step

    def __getstate__(self) -> tuple[Any, ...]:
        return self._given

    def __setstate__(self, given: tuple[Any, ...]) -> None:
        self._given = given
        self._open(_core.Recipe("", given[0], []))
