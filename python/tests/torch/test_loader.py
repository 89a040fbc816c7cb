"""The batches of a run in PyTorch's loader of data."""


import numpy as np
import pytest
import torch

import onebit

RECIPE = {
    "train_batch_size": 4, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
    "model": {"preset": "bert-tiny"}, "data": {"sequence_length": 32}, "run": {"steps": 12}}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    words = "the cat sat on a mat and saw red birds in old trees near green rivers".split()
    text = "".join(" ".join(words[(i * 7 + k) % len(words)] for k in range(8)) + ".\n"
                   + ("\n" if i % 10 == 9 else "") for i in range(300))
    (folder / "text.txt").write_text(text)
    onebit.prepare(folder / "text.txt", folder / "store", vocab_size=110, format="lines")
    return folder / "store"


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_give_the_batches_in_order(store, workers, method):
    batches = onebit.Batches(RECIPE, store, threads=2)
    expected = list(batches)  # the process that forks has used its threads
    options = {} if workers == 0 else {"multiprocessing_context": method}
    loader = torch.utils.data.DataLoader(
        batches, batch_size=None, num_workers=workers, timeout=60 if workers else 0,
        sampler=range(5, len(batches)), **options)
    loaded = list(loader)
    assert len(loaded) == 7
    for batch, original in zip(loaded, expected[5:]):
        assert batch.keys() == original.keys()
        for name, values in original.items():
            assert batch[name].dtype == torch.int64
            assert np.array_equal(batch[name].numpy(), values)


class Vectors(torch.utils.data.Dataset):
    """Uses an encoder in the worker."""

    def __init__(self, model, texts):
        self.encoder, self.texts = onebit.Encoder(model, threads=2), texts
        self.encoder.encode(texts)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.encoder.encode([self.texts[index]])[0]


def test_forked_workers_encode(store, tmp_path):
    onebit.train(RECIPE, data=store, output=tmp_path / "run", overrides={"run.steps": 1},
                 threads=1, quiet=True)
    data = Vectors(tmp_path / "run", ["the cat sat"] * 20)
    loader = torch.utils.data.DataLoader(data, batch_size=5, num_workers=2, timeout=60,
                                         multiprocessing_context="fork")
    vectors = np.concatenate([batch.numpy() for batch in loader])
    assert np.array_equal(vectors, data.encoder.encode(data.texts))


def test_a_model_of_transformers_takes_the_names(store):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=110, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64)
    model = transformers.BertForPreTraining(config)
    batch = {name: torch.from_numpy(values) for name, values in onebit.Batches(RECIPE, store)[0].items()
             if name != "samples"}
    assert torch.isfinite(model(**batch).loss)
