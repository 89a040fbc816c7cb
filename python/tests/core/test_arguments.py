"""Every public function and class with each argument wrong: an exception that says which, never the
end of the process, a hang or a silent copy. Each group runs in a process of its own."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

import onebit
from wrong_arguments import (begin_child, call_with_each, checked_outcomes, lines_of, public_names,
                             run_child, wrong_values)

# Callbacks are the caller's own, and TrainingResult is what train() returns.
PLAIN = ("Callbacks", "TrainingResult")
NAMES = list(public_names({name: getattr(onebit, name) for name in onebit.__all__
                           if name not in PLAIN}))
ACCEPTED = ("TypeError", "UnicodeEncodeError", "IndexError", "Error", "LookupError", "OSError")


def public_calls(models):
    """For each call: its name, the function, and arguments with which it works."""
    folder = pathlib.Path(models)
    store, run, text = folder / "store", folder / "run", folder / "text.txt"
    recipe = json.loads((folder / "recipe.json").read_text())
    encoder = onebit.Encoder(run, threads=1)
    classifier = onebit.Classifier(folder / "classify", threads=1)
    tagger = onebit.Tagger(folder / "tag", threads=1)
    answers = onebit.QuestionAnswering(folder / "squad", threads=1)
    masks = onebit.FillMask(run, threads=1)
    tokenizer, tokens = onebit.Tokenizer(run), onebit.TokenStore(store)
    batches = onebit.Batches(recipe, store)
    of_model = {"max_sequence_length": 16, "batch_size": 2, "compute": "f32", "threads": 1}

    def again(function):
        """Removes what a call has written."""
        def call(**arguments):
            shutil.rmtree("made", ignore_errors=True)
            return function(**arguments)
        return call

    return {
        "Encoder": (onebit.Encoder, {"folder": run, "pooling": "cls", "normalize": True,
                                     "dimensions": 3,
                                     "prompt": "query: ", **of_model}),
        "Encoder.encode": (encoder.encode, {"texts": ["the cat"]}),
        "Classifier": (onebit.Classifier, {"folder": folder / "classify", **of_model}),
        "Classifier.logits": (classifier.logits, {"texts": ["a"], "text_pairs": ["b"]}),
        "Classifier.predict": (classifier.predict, {"texts": ["a"], "text_pairs": ["b"]}),
        "Tagger": (onebit.Tagger, {"folder": folder / "tag", "stride": 4, **of_model}),
        "Tagger.logits": (tagger.logits, {"sentences": [["a", "cat"]]}),
        "Tagger.predict": (tagger.predict, {"sentences": [["a", "cat"]]}),
        "QuestionAnswering": (onebit.QuestionAnswering, {"folder": folder / "squad",
                                                         "compute": "f32", "threads": 1}),
        "QuestionAnswering.answer": (answers.answer, {"question": "who", "text": "the cat sat",
                                                      "may_abstain": True}),
        "QuestionAnswering.candidates": (answers.candidates, {
            "question": "who", "text": "the cat sat", "may_abstain": True}),
        "FillMask": (onebit.FillMask, {"folder": run, "threads": 1}),
        "FillMask.fill": (masks.fill, {"text": "the [MASK]", "top": 2}),
        "Tokenizer": (onebit.Tokenizer, {"folder": run, "cased": False}),
        "Tokenizer.encode": (tokenizer.encode, {"text": "the cat"}),
        "Tokenizer.batch": (tokenizer.batch, {"texts": ["the cat"], "max_length": 8}),
        "Tokenizer.decode": (tokenizer.decode, {"ids": [7], "skip_special": True}),
        "Tokenizer.token": (tokenizer.token, {"id": 7}),
        "Tokenizer.id": (tokenizer.id, {"token": "cat"}),
        "TokenStore": (onebit.TokenStore, {"folder": store}),
        "TokenStore.__getitem__": (tokens.__getitem__, {"index": 1}),
        "TokenStore.batches": (tokens.batches, {"recipe": recipe}),
        "Batches": (onebit.Batches, {
            "recipe": recipe, "stores": store, "overrides": {"run.steps": 2}, "rank": 0, "world": 1,
            "padded": True, "threads": 1}),
        "Batches.__getitem__": (batches.__getitem__, {"number": 1}),
        "Batches.from_step": (batches.from_step, {"step": 1}),
        "prepare": (again(onebit.prepare), {
            "inputs": text, "output": "made", "vocab_size": 120, "vocab": None,
            "vocab_type": "wordpiece", "source": "text", "cased": False, "format": "lines", "locale": "en", "threads": 1, "overwrite": False,
            "drop_duplicates": False, "skip_bad_records": False, "progress": None}),
        "convert": (again(onebit.convert), {
            "input": run, "output": "made", "source": None, "config": None, "vocab": None,
            "heads": None, "hidden_act": None, "cased": None, "drop": (), "dtype": None,
            "naming": "huggingface"}),
        "plan": (onebit.plan, {
            "recipe": recipe, "bandwidth": "1Gb/s", "hosts": 1, "ranks_per_host": 1,
            "latency": "1ms", "measured": folder / "costs.json", "watts": 10.0, "threads": 1,
            "model": None, "overrides": None}),
        "set_log": (onebit.set_log, {"function": None, "level": "info"}),
        "doctor": (onebit.doctor, {"measure": False, "threads": 1}),
        "train": (again(onebit.train), {
            "recipe": recipe, "data": store, "output": "made", "valid": None, "model": None,
            "resume": False, "overrides": {"run.steps": 1}, "callbacks": None, "quiet": True,
            "device": "cpu", "threads": 1}),
    }


def run_public(models, name):
    function, valid = public_calls(models)[name]
    call_with_each(lambda: function, valid, wrong_values())


def natives():
    """The functions and classes of the extension module, and objects for its methods."""
    from onebit import _core
    names = [name for name in sorted(dir(_core)) if not name.startswith("_") and name != "version"
             and not (isinstance(getattr(_core, name), type)
                      and issubclass(getattr(_core, name), BaseException))]
    return _core, names


def places_of(function):
    """The names and types of a native function's parameters, without self."""
    (signature, *_), = function.__nb_signature__
    inside = re.search(r"\((.*)\)", signature)[1]
    return re.findall(r"(\w+): ([^:]*?)(?=, \w+:|$)", inside)


def run_native(models):
    """Calls with every value in every place. The other arguments are right: given here, or by their
    types. Prints which function has survived."""
    import numpy as np
    core, names = natives()
    folder = pathlib.Path(models)
    recipe = core.Recipe(str(folder / "recipe.json"), "", [])
    adam = json.dumps({"train_batch_size": 1, "run": {"steps": 9},
                       "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}})
    run, alone = str(folder / "run"), core.one_rank()
    constructors = {
        "Recipe": (str(folder / "recipe.json"), "", []), "Schedule": (adam,),
        "Engine": ([("a", [2, 2], 0, [])], adam, alone, 1, None),
        "TokenStore": (str(folder / "store"),),
        "Batches": (recipe, [(str(folder / "store"), 0.0)], 0, 1, 1), "Tokenizer": (run, None),
        "Encoder": (run, 16, None, None, None, None, 2, "f32", 1),
        "Classifier": (str(folder / "classify"), 16, 2, "f32", 1),
        "Tagger": (str(folder / "tag"), 16, 4, 2, "f32", 1),
        "QuestionAnswering": (str(folder / "squad"), "f32", 1), "FillMask": (run, 1),
    }
    objects = {name: getattr(core, name)(*given) for name, given in constructors.items()}
    objects["Ranks"] = alone
    engine = objects["Engine"]
    right = {"Engine.load_state": ({0: engine.state(True)}, 1), "Engine.range": (0,),
             "Engine.set_groups": ([(1.0, 0.0)],), "Ranks.maximum": (np.zeros(2), ),
             "Ranks.broadcast": (np.zeros(2), 0), "check_recipe": (adam, "a config"),
             "Batches.build": (0, True), "TokenStore.document": (0,)}
    usual = [("Sequence", []), ("list", []), ("dict", {}), ("Recipe", recipe), ("Ranks", alone),
             ("str", "x"), ("int", 1), ("float", 1.0), ("bool", False), ("object", None)]
    wrong = [*wrong_values(), {0: {}}, {0: {"own/a": np.zeros(3)}}, {0: {1: "x"}}, {"x": {}},
             {0: {"scalar/step": 1}}, [("a", [2**62, 4], 0, [])], [("a", [0], 0, [])]]

    def call_with_each_value(name, function, places):
        if name in right:
            values = list(right[name])
        else:
            values = [next((value for word, value in usual if word in kind)) for _, kind in places]
        assert len(values) == len(places), name
        for place in range(len(values)):
            for value in wrong:
                given = [value if k == place else other for k, other in enumerate(values)]
                try:
                    function(*given)
                except (TypeError, ValueError, RuntimeError, LookupError, OverflowError,
                        MemoryError):
                    pass
        print(json.dumps(name), flush=True)

    # These wait for other ranks, measure or train. Their public callers are tested above.
    waiting = {"ranks_over_tcp", "train", "prepare_text", "prepare_samples", "plan", "doctor"}
    for name in names:
        found = getattr(core, name)
        if not isinstance(found, type):
            if name not in waiting:
                call_with_each_value(name, found, places_of(found))
            continue
        if name in constructors:
            right[name] = constructors[name]
            call_with_each_value(name, found, places_of(found.__init__))
        for member in sorted(vars(found)):
            method = getattr(found, member)
            if not member.startswith("_") and callable(method) and member not in ("abort", "verify"):
                call_with_each_value(f"{name}.{member}", getattr(objects[name], member),
                                     places_of(method))
    core.set_log(None)


def test_arrays_of_the_extension_are_never_converted():
    """A result would be written into the copy."""
    import numpy as np
    from wrong_arguments import OnAnotherDevice
    ranks = onebit._core.one_rank()
    for wrong in (np.zeros(2, np.float32), np.zeros(2, np.int64), np.zeros(4)[::2],
                  np.zeros((2, 2)), np.zeros((2, 2)).T, np.array(1.0), [1.0], OnAnotherDevice()):
        with pytest.raises(TypeError):
            ranks.maximum(wrong)
    for wrong in (np.zeros(4)[::2], np.zeros((2, 3)).T, [1.0], b"x", OnAnotherDevice()):
        with pytest.raises(TypeError):
            ranks.broadcast(wrong, 0)
    adam = json.dumps({"train_batch_size": 1, "run": {"steps": 9},
                       "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}})
    engine = onebit._core.Engine([("a", [2, 2], 0, [])], adam, ranks, 1, None)
    state = engine.state(True)
    arrays = [name for name, value in state.items() if not isinstance(value, str)]
    assert len(arrays) >= 2
    for name in arrays:
        for wrong in (state[name].astype(np.float64), np.repeat(state[name], 2)[::2], [0.0] * 4,
                      state[name].reshape(2, -1), OnAnotherDevice()):
            with pytest.raises(onebit.Error, match=f"`{name}` of the state is a"):
                engine.load_state({0: state | {name: wrong}}, 1)
        with pytest.raises(onebit.Error, match="of another model"):
            engine.load_state({0: state | {name: state[name][:1]}}, 1)
    engine.load_state({0: state}, 1)


@pytest.fixture(scope="module")
def models(folder, all_models):
    from conftest import onebit as program
    program("doctor", "--output", folder / "costs.json", "--threads", 1)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arguments_are_errors_by_name(models, name, tmp_path):
    done = run_child(__file__, "public", models, name, cwd=tmp_path)
    count = 0
    for argument, value, outcome, message, where in checked_outcomes(
            name, lines_of(done), ACCEPTED):
        count += 1
        if outcome == "TypeError":
            assert argument in message, where
        if outcome in ("IndexError", "OSError"):
            # The argument, or what was given. An Error may say what is missing beside it.
            assert argument in message or value.strip("'\"")[:20] in message, where
        if value == ascii("\ud800") and argument not in ("recipe", "callbacks"):
            assert outcome in ("UnicodeEncodeError", "TypeError"), where
    assert count >= 30


def test_the_extension_survives_wrong_arguments(models, tmp_path):
    done = run_child(__file__, "native", models, cwd=tmp_path)
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr[-3000:])
    assert len(done.stdout.splitlines()) > 45


# An object that lives until the interpreter ends, and one in a cycle.
def test_objects_may_outlive_the_interpreter(models, tmp_path):
    code = f"""
import builtins, onebit
builtins.kept = [onebit.Encoder({str(models / "run")!r}, threads=2), onebit.TokenStore({str(models / "store")!r}),
                 onebit.Tokenizer({str(models / "run")!r}), onebit.Batches({str(models / "recipe.json")!r}, {str(models / "store")!r})]
builtins.kept[0].encode(["the cat"] * 40)
builtins.kept.append(builtins.kept)
builtins.array = builtins.kept[0].encode(["the cat"])
onebit._core.set_log(lambda level, text: None)
class Keeps(onebit.Callbacks):
    def __init__(self): self.me = self
    def on_step(self, record): builtins.record = record
builtins.calls = Keeps()
onebit.train({str(models / "recipe.json")!r}, data={str(models / "store")!r}, output="made", threads=1, callbacks=builtins.calls)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# As the loader of data does: a fork of a process that has computed on several threads.
def test_a_forked_worker_uses_an_encoder_and_a_store(models):
    import numpy as np
    import onebit
    encoder = onebit.Encoder(models / "run", threads=2)
    batches = onebit.Batches(models / "recipe.json", models / "store", threads=2)
    texts = ["the cat sat"] * 40
    expected, ids = encoder.encode(texts), batches[1]["input_ids"]
    workers = []
    for _ in range(2):
        worker = os.fork()
        if worker == 0:
            signal.alarm(60)
            same = np.allclose(encoder.encode(texts), expected, atol=1e-5)
            os._exit(0 if same and np.array_equal(batches[1]["input_ids"], ids) else 1)
        workers.append(worker)
    assert [os.waitpid(worker, 0)[1] for worker in workers] == [0, 0]


if __name__ == "__main__":
    begin_child()
    onebit._core.set_log(lambda level, text: None)
    if sys.argv[1] == "public":
        run_public(*sys.argv[2:])
    else:
        run_native(*sys.argv[2:])


def test_errors_name_the_argument(models, tmp_path):
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed, in folder"):
        onebit.Encoder(os.fsdecode(b"/tmp/\xff"))
    with pytest.raises(onebit.Error, match="stores.'store'. is 0.0: a weight must be above 0"):
        onebit.Batches({"task": "pretrain"}, {"store": 0})
    tokenizer = onebit.Tokenizer(models / "run")
    for wrong in (None, b"text", 3):
        with pytest.raises(TypeError, match="text must be a str or a list of them, not"):
            tokenizer.encode(wrong)
    with pytest.raises(onebit.Error, match="overrides.1. is 'steps': write key=value"):
        onebit.train({"task": "pretrain"}, data="store", output=tmp_path / "run",
                     overrides=["run.steps=1", "steps"])
