"""Every public function and class with each argument wrong: an exception that says which, never the
end of the process, a hang or a silent copy. Each group runs in a process of its own."""

import faulthandler
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

SECONDS = 300


def wrong_values():
    import numpy as np

    class Strange:
        def __index__(self):
            raise LookupError("an index of its own")

    return [None, True, 0, -1, 2**31, 2**63, -(2**63), 2**100, 1.5, float("nan"), float("inf"),
            10**400, "", "x", "\ud800", "a\0b", "x" * 100000, b"x", [], [1], [None], ["\ud800"],
            [["x"]], ["x"] * 3, {}, {"x": "x"}, {1: 2}, object(), Strange(), int, len, np.int64(1),
            np.float64(2), np.array(1.0), np.zeros(4)[::2], np.zeros((2, 2)), np.array([np.nan]),
            np.zeros(0), np.zeros(3, np.float16), np.array(["x"], object), slice(None), range(2)]


def public_calls(models):
    """For each call: its name, the function, and arguments with which it works."""
    import onebit
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
    """Prints a line for each call: the argument, its value and the outcome."""
    import onebit
    function, valid = public_calls(models)[name]
    function(**valid)
    for argument in valid:
        for value in wrong_values():
            shown = ascii(value)[:60]
            try:
                function(**{**valid, argument: value})
                outcome = ["works", ""]
            except (TypeError, UnicodeEncodeError, IndexError, onebit.Error, LookupError) as error:
                outcome = [type(error).__name__, str(error)]
            except OSError as error:
                outcome = ["OSError", str(error)]
            print(json.dumps([argument, shown, *outcome]), flush=True)


def natives():
    """The functions and classes of the extension module, and objects for its methods."""
    from onebit import _core
    names = [name for name in sorted(dir(_core)) if not name.startswith("_")
             and not (isinstance(getattr(_core, name), type)
                      and issubclass(getattr(_core, name), BaseException))]
    return _core, names


def run_native(models):
    """Calls with every value in every place. The other arguments have the types of the signature."""
    import numpy as np
    import onebit
    core, names = natives()
    folder = pathlib.Path(models)
    recipe = core.Recipe(str(folder / "recipe.json"), "", [])
    adam = json.dumps({"train_batch_size": 1, "run": {"steps": 9},
                       "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}})
    objects = {
        "Ranks": core.one_rank(), "Recipe": recipe, "Schedule": core.Schedule(adam),
        "Engine": core.Engine([("a", [2, 2], 0, [])], adam, core.one_rank(), 1),
        "TokenStore": core.TokenStore(str(folder / "store")),
        "Batches": core.Batches(recipe, [(str(folder / "store"), 0.0)], 0, 1, 1),
        "Tokenizer": core.Tokenizer(str(folder / "run"), None),
        "Encoder": onebit.Encoder(folder / "run", threads=1)._model,
        "Classifier": onebit.Classifier(folder / "classify", threads=1)._model,
        "Tagger": onebit.Tagger(folder / "tag", threads=1)._model,
        "QuestionAnswering": onebit.QuestionAnswering(folder / "squad", threads=1)._model,
        "FillMask": onebit.FillMask(folder / "run", threads=1)._model,
    }
    usual = [("Sequence", []), ("list", []), ("dict", {}), ("ndarray", np.zeros(2, np.float32)),
             ("Recipe", recipe), ("Ranks", core.one_rank()), ("str", "x"), ("int", 1), ("float", 1.0),
             ("bool", False)]

    def value_for(annotation):
        for word, value in usual:
            if word in annotation:
                return value
        return None

    def call_with_each(name, function, takes_self):
        text = getattr(function, "__nb_signature__", None)
        if not text:
            return
        for signature, *_ in text:
            inside = re.search(r"\((.*)\)", signature)[1]
            places = re.findall(r"(\w+): ([^:]*?)(?=, \w+:|$)", inside)
            values = [value_for(kind) for _, kind in places]
            for place in range(len(values) + 1):
                for wrong in wrong_values():
                    given = [wrong if k == place else v for k, v in enumerate(values)]
                    try:
                        function(*given)
                    except (TypeError, ValueError, RuntimeError, LookupError, OverflowError):
                        pass
        print(json.dumps([name, "", "works", ""]), flush=True)

    # These wait for other ranks, measure or train. Their public callers are tested above.
    waiting = {"ranks_over_tcp", "train", "prepare_text", "prepare_samples", "plan", "doctor"}
    for name in names:
        found = getattr(core, name)
        if not isinstance(found, type):
            if name not in waiting:
                call_with_each(name, found, False)
            continue
        call_with_each(name, found.__init__ if name == "" else found, True)
        if name in objects:
            for member in dir(found):
                if not member.startswith("_") and member not in ("abort", "verify"):
                    bound = getattr(objects[name], member)
                    if callable(bound):
                        kept = getattr(found, member)
                        call_with_each(f"{name}.{member}", _Bound(kept, objects[name]), True)
    core.set_log(None)


class _Bound:
    """A method with its object, which keeps the signature."""

    def __init__(self, method, owner):
        self._method, self._owner = method, owner
        self.__nb_signature__ = getattr(method, "__nb_signature__", None)

    def __call__(self, *given):
        return self._method(self._owner, *given)


def child(*words, cwd):
    return subprocess.run([sys.executable, __file__, *map(str, words)], cwd=cwd, text=True,
                          capture_output=True, check=False, timeout=2 * SECONDS)


NAMES = """Encoder Encoder.encode Classifier Classifier.logits Classifier.predict Tagger Tagger.logits
    Tagger.predict QuestionAnswering QuestionAnswering.answer QuestionAnswering.candidates FillMask
    FillMask.fill Tokenizer Tokenizer.encode Tokenizer.batch Tokenizer.decode Tokenizer.token
    Tokenizer.id TokenStore TokenStore.__getitem__ TokenStore.batches Batches Batches.__getitem__
    Batches.from_step prepare convert plan doctor set_log train""".split()


def test_all_public_names_are_called():
    import onebit
    exceptions = {"Error", "InternalError", "NetworkError", "PeerError"}
    plain = {"Callbacks", "TrainingResult"}
    assert set(onebit.__all__) - exceptions - plain == {name for name in NAMES if "." not in name}


@pytest.fixture(scope="module")
def models(folder, all_models):
    from conftest import onebit as program
    program("doctor", "--output", folder / "costs.json", "--threads", 1)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arguments_are_errors_by_name(models, name, tmp_path):
    done = child("public", models, name, cwd=tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    assert lines
    for argument, value, outcome, message in lines:
        where = f"{name}({argument}={value}): {outcome}: {message[:300]}"
        is_function = value.startswith(("<class", "<built-in"))
        if outcome == "TypeError" and not is_function:  # a function raises errors of its own
            assert argument in message, where
        if outcome in ("Error", "IndexError", "OSError"):
            # The argument, or what was given, or what is missing beside it.
            shown = value.strip("'\"")[:20]
            assert argument in message or shown in message or outcome == "Error", where
        assert "incompatible function arguments" not in message, where
        assert "bad_alloc" not in message and "InternalError" not in outcome, where
        if value == ascii("\ud800") and argument not in ("recipe", "callbacks"):
            assert outcome in ("UnicodeEncodeError", "TypeError"), where


def test_the_extension_survives_wrong_arguments(models, tmp_path):
    done = child("native", models, cwd=tmp_path)
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr[-3000:])
    assert len(done.stdout.splitlines()) > 30


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
            same = np.array_equal(encoder.encode(texts), expected)
            os._exit(0 if same and np.array_equal(batches[1]["input_ids"], ids) else 1)
        workers.append(worker)
    assert [os.waitpid(worker, 0)[1] for worker in workers] == [0, 0]


if __name__ == "__main__":
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    import onebit as _package
    _package._core.set_log(lambda level, text: None)
    if sys.argv[1] == "public":
        run_public(*sys.argv[2:])
    else:
        run_native(*sys.argv[2:])
