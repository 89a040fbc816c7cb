"""Stores, and the batches of a run: the same for any number of ranks and workers."""

import json
import multiprocessing
import os
import pickle

import numpy as np
import pytest

import onebit
from conftest import onebit as program, sentence, write

RECIPE = {
    "train_batch_size": 12, "train_micro_batch_size_per_gpu": 3,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "model": {"preset": "bert-tiny"},
    "data": {"sequence_length": 32}, "run": {"steps": 40, "seed": 7}}


@pytest.fixture(scope="module")
def store(folder, pretrained):
    return folder / "store"


def test_documents_are_those_of_the_text(store):
    tokens = onebit.TokenStore(store)
    assert len(tokens) == 40 and tokens.sentences == 400
    assert tokens.tokens == tokens.manifest["tokens"] and "[MASK]" in tokens.vocabulary
    words = onebit.Tokenizer(store)
    documents = list(tokens)
    assert [len(document) for document in documents] == [10] * 40
    assert documents[3][4].dtype == np.int32
    for number in (0, 34, 399):
        ids = documents[number // 10][number % 10]
        assert np.array_equal(ids, words.encode(sentence(number) + ".")[0])
        assert words.decode(ids) == sentence(number) + "."
    assert all(np.array_equal(a, b) for a, b in zip(tokens[-1], documents[39]))
    with pytest.raises(IndexError):
        tokens[40]
    with pytest.raises(IndexError):
        tokens[-41]
    tokens.verify()


def samples_of(batches, numbers=None):
    """The sequences of micro-batches by their numbers in the run: (ids, types, labels, label)."""
    found = {}
    for number in range(len(batches)) if numbers is None else numbers:
        batch = batches[number]
        for row, sample in enumerate(batch["samples"]):
            length = batch["attention_mask"][row].sum()
            assert not batch["attention_mask"][row][length:].any()
            assert (batch["labels"][row][length:] == -100).all()
            assert int(sample) not in found
            found[int(sample)] = (
                batch["input_ids"][row][:length].tolist(),
                batch["token_type_ids"][row][:length].tolist(),
                batch["labels"][row][:length].tolist(), int(batch["next_sentence_label"][row]))
    return found


def test_batches_are_the_same_for_any_number_of_ranks(store):
    one = onebit.Batches(RECIPE, onebit.TokenStore(store))
    assert (one.steps, one.accumulation, one.samples_per_step, len(one)) == (40, 4, 12, 160)
    assert one[0]["input_ids"].shape[0] == 3 and one[0]["input_ids"].dtype == np.int64
    whole = samples_of(one)
    assert sorted(whole) == list(range(480))
    for world in (2, 4):
        found = {}
        for rank in range(world):
            found |= samples_of(onebit.Batches(RECIPE, store, rank=rank, world=world))
        assert found == whole
    # Several epochs: the store has fewer than 480 examples.
    assert len({tuple(ids) for ids, *_ in whole.values()}) > 40


def test_batches_have_masked_words_and_pairs_of_the_store(store):
    words = onebit.Tokenizer(store)
    mask = words.id("[MASK]")
    whole = samples_of(onebit.TokenStore(store).batches(RECIPE))
    masked, labelled = 0, 0
    for ids, types, labels, is_random in whole.values():
        assert ids[0] == words.id("[CLS]") and ids[-1] == words.id("[SEP]")
        assert types == sorted(types) and is_random in (0, 1) and len(ids) <= 32
        labelled += sum(label != -100 for label in labels)
        masked += sum(id == mask for id in ids)
    assert 0.7 < masked / labelled < 0.9  # of the masked words, 80 % are replaced by [MASK]


def test_a_resumed_run_continues_with_the_same_batches(store):
    batches = onebit.Batches(RECIPE, store, world=2, rank=1)
    later = onebit.Batches(RECIPE, store, world=2, rank=1)  # has cut no epoch yet
    expected = [batches[number] for number in range(len(batches))]
    for number, batch in enumerate(later.from_step(35), start=70):
        for name, values in expected[number].items():
            assert np.array_equal(values, batch[name])
    assert number == 79


def test_packed_batches_have_the_same_content(store):
    padded = onebit.Batches(RECIPE, store)[5]
    packed = onebit.Batches(RECIPE, store, padded=False)[5]
    starts = packed["sequence_starts"]
    assert starts[-1] == len(packed["input_ids"]) == padded["attention_mask"].sum()
    keep = padded["attention_mask"] == 1
    assert np.array_equal(padded["input_ids"][keep], packed["input_ids"])
    assert np.array_equal(padded["token_type_ids"][keep], packed["token_type_ids"])
    labels = np.full(starts[-1], -100)
    labels[packed["labelled_rows"]] = packed["row_labels"]
    assert np.array_equal(padded["labels"][keep], labels)
    assert packed["position_ids"][starts[1]] == 0


def test_masked_words_alone_have_no_pairs(store):
    batch = onebit.Batches(RECIPE, store, overrides={"data.next_sentence": False})[0]
    assert "next_sentence_label" not in batch and not batch["token_type_ids"].any()


def work(batches, numbers, queue):
    queue.put([batches[number]["input_ids"].tolist() for number in numbers])


# Forked workers inherit an object that was used, others get it pickled.
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_make_the_same_batches(store, method):
    batches = onebit.Batches(RECIPE, store, threads=2)
    expected = [batches[number]["input_ids"].tolist() for number in range(6)]
    context = multiprocessing.get_context(method)
    queues = [context.Queue() for _ in range(2)]
    workers = [context.Process(target=work, args=(batches, range(place, 6, 2), queue))
               for place, queue in enumerate(queues)]
    for worker in workers:
        worker.start()
    for place, queue in enumerate(queues):
        assert queue.get(timeout=60) == expected[place::2]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0


def test_stores_can_be_pickled(store):
    tokens = pickle.loads(pickle.dumps(onebit.TokenStore(store)))
    assert len(tokens) == 40
    tokenizer = pickle.loads(pickle.dumps(onebit.Tokenizer(store)))
    assert len(tokenizer) == len(tokens.vocabulary)


def test_mixtures_have_weights(folder, store):
    text = "".join(f"{sentence(i, 6)}.\n" + ("\n" if i % 10 == 9 else "") for i in range(300))
    onebit.prepare(write(folder / "more.txt", text), folder / "more", vocab=store, format="lines")
    batches = onebit.Batches(RECIPE, {store: 3, folder / "more": 1})
    assert sorted(samples_of(batches, range(8))) == list(range(24))


def test_prepare_makes_the_programs_store(folder, store, tmp_path):
    seen = []
    result = onebit.prepare([folder / "text.txt"], tmp_path / "store", vocab_size=120,
                            progress=seen.append)
    assert result["manifest"]["sentences"] == 400 and result["output"] == str(tmp_path / "store")
    for name in ("tokens.bin", "sentences.bin", "documents.bin", "vocab.txt"):
        assert (tmp_path / "store" / name).read_bytes() == (store / name).read_bytes()
    assert json.loads((tmp_path / "store/manifest.json").read_text()) == result["manifest"]
    with pytest.raises(onebit.Error, match="overwrite|exists"):
        onebit.prepare(folder / "text.txt", tmp_path / "store", vocab_size=120)
    with pytest.raises(onebit.Error, match="either vocab_size"):
        onebit.prepare(folder / "text.txt", tmp_path / "other")
    with pytest.raises(onebit.Error, match="format is one of"):
        onebit.prepare(folder / "text.txt", tmp_path / "other", vocab_size=9, format="words")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_prepare_learns_other_vocabularies(folder, store, tmp_path, kind):
    made = onebit.prepare(folder / "text.txt", tmp_path / "store", vocab_size=300, vocab_type=kind)
    assert made["manifest"]["tokenizer_files"] == ["tokenizer.json", "tokenizer_config.json"]
    tokenizer = onebit.Tokenizer(tmp_path / "store")
    ids, _ = tokenizer.encode((folder / "text.txt").read_text().split("\n")[0])
    assert 0 < len(ids) and max(ids) < made["manifest"]["vocabulary_size"] <= 300
    with pytest.raises(onebit.Error, match="wordpiece, unigram or bpe"):
        onebit.prepare(folder / "text.txt", tmp_path / "no", vocab_size=300, vocab_type="words")
    with pytest.raises(onebit.Error, match="vocab_type is for vocab_size"):
        onebit.prepare(folder / "text.txt", tmp_path / "no", vocab=tmp_path / "store",
                       vocab_type=kind)
    assert not (tmp_path / "no").exists()


def test_wrong_batches_are_errors(store):
    with pytest.raises(onebit.Error, match="rank must be between 0 and 1"):
        onebit.Batches(RECIPE, store, rank=2, world=2)
    with pytest.raises(onebit.Error, match="steps"):
        onebit.Batches({**RECIPE, "run": {}}, store)
    with pytest.raises(onebit.Error, match="train_batch_size"):
        onebit.Batches(RECIPE, store, world=5)
    with pytest.raises(onebit.Error, match="nowhere"):
        onebit.Batches(RECIPE, "nowhere")
    with pytest.raises(IndexError):
        onebit.Batches(RECIPE, store)[160]
