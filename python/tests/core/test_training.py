"""A training from Python leaves what the program leaves, to the bit."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

import onebit
from conftest import PROGRAM, fine_tuning_files, onebit as program, write

RECIPE = {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
PRETRAIN = RECIPE | {
    "task": "pretrain", "model": {"preset": "bert-tiny"}, "data": {"sequence_length": 32},
    "run": {"steps": 4, "evaluate_every": 2, "checkpoint_every": 2}}
KINDS = ["classify", "tag", "squad", "embed"]


def lines_of(run):
    """The lines of metrics.jsonl about steps and evaluations, without times."""
    lines = []
    for text in (run / "metrics.jsonl").read_text().splitlines():
        line = json.loads(text)
        if line["kind"] in ("start", "end"):
            lines.append(line["kind"])
            continue
        for name in [name for name in line if "second" in name]:
            del line[name]
        for values in line.values():
            if isinstance(values, dict):
                for name in [name for name in values if "second" in name]:
                    del values[name]
        lines.append(line)
    return lines


def content_of(run):
    """The bytes of all files whose content is no time, by their names in the run's folder."""
    names = sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file())
    timed = [name for name in names if name.parts[0] == "tensorboard" or str(name) == "metrics.jsonl"]
    assert len(timed) == 2
    return {str(name): (run / name).read_bytes().replace(str(run).encode(), b"RUN")
            for name in names if name not in timed}


def assert_same_runs(one, other):
    first, second = content_of(one), content_of(other)
    assert first.keys() == second.keys()
    for name, content in first.items():
        assert content == second[name], name
    assert lines_of(one) == lines_of(other)
    assert any("state" in name for name in first) and any("safetensors" in name for name in first)


def command_of(kind):
    return ["pretrain"] if kind == "pretrain" else [kind, "train"]


@pytest.mark.parametrize("kind", ["pretrain", *KINDS])
def test_files_equal_the_programs(folder, pretrained, kind, tmp_path):
    if kind == "pretrain":
        recipe, train, dev, model = PRETRAIN, folder / "store", folder / "store", None
        options = ["--data", train, "--valid", dev]
    else:
        recipe = RECIPE | {"task": kind, "run": {"steps": 4, "checkpoint_every": 2}}
        train, dev = fine_tuning_files(folder, kind)
        model = pretrained
        options = ["--train", train, "--dev", dev, "--model", model]
    path = write(tmp_path / "recipe.json", json.dumps(recipe))
    # The folders have names of the same length: files may contain them.
    program(*command_of(kind), "--recipe", path, "--output", tmp_path / "program", "--threads", 1,
            *options)
    result = onebit.train(path, data=train, valid=dev, model=model, output=tmp_path / "package",
                          threads=1)
    assert_same_runs(tmp_path / "program", tmp_path / "package")
    assert result.finished and result.steps == 4 and result.folder == tmp_path / "package"
    steps = [line for line in lines_of(result.folder) if isinstance(line, dict)]
    assert result.metrics["step"] == 4 and result.evaluation["step"] == 4
    assert result.metrics["loss"] == [one for one in steps if one["kind"] == "step"][-1]["loss"]
    assert (result.model / "model.safetensors").exists()
    assert (result.best is None) == (kind == "pretrain")


def ranks_of(words, count, tmp_path):
    """Runs a command on ranks that TCP connects. Returns (status, standard output and error)."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        number = port.getsockname()[1]
    ranks = [subprocess.Popen(
        [str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"ONEBIT_TRANSPORT": "tcp", "RANK": str(rank), "WORLD_SIZE": str(count),
                          "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                          "MASTER_PORT": str(number)}) for rank in range(count)]
    outputs = [rank.communicate(timeout=600) for rank in ranks]
    return [(rank.returncode, *output) for rank, output in zip(ranks, outputs)]


def script(tmp_path, text):
    return write(tmp_path / "script.py", textwrap.dedent(text))


def test_two_ranks_over_tcp_equal_the_programs(folder, pretrained, tmp_path):
    recipe = PRETRAIN | {
        "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 2}}}
    path = write(tmp_path / "recipe.json", json.dumps(recipe))
    for status, _, error in ranks_of(
            [PROGRAM, "pretrain", "-r", path, "-d", folder / "store", "-o", tmp_path / "program",
             "--threads", 1], 2, tmp_path):
        assert status == 0, error
    # A process can train again over TCP.
    code = script(tmp_path, f"""
        import onebit
        for name in ("package", "another"):
            result = onebit.train({str(path)!r}, data={str(folder / "store")!r},
                                  output={str(tmp_path)!r} + "/" + name, threads=1)
            assert result.steps == 4 and result.metrics["phase"] == "compressed", result
        """)
    for status, _, error in ranks_of([sys.executable, code], 2, tmp_path):
        assert status == 0, error
    assert_same_runs(tmp_path / "program", tmp_path / "package")
    assert_same_runs(tmp_path / "program", tmp_path / "another")


def test_an_exception_on_one_rank_ends_the_others(folder, pretrained, tmp_path):
    code = script(tmp_path, f"""
        import os, onebit
        class Raises(onebit.Callbacks):
            def on_step(self, record):
                if os.environ["RANK"] == "1" and record["step"] == 2:
                    raise LookupError("the end of the world")
        try:
            onebit.train({PRETRAIN!r}, data={str(folder / "store")!r},
                         output={str(tmp_path / "run")!r}, callbacks=Raises(), threads=1)
        except (LookupError, onebit.PeerError) as error:
            print(type(error).__name__, "the end of the world" in str(error))
        """)
    outputs = [output for _, output, _ in ranks_of([sys.executable, code], 2, tmp_path)]
    assert outputs == ["PeerError True\n", "LookupError True\n"]


class Recorder(onebit.Callbacks):
    def __init__(self, last=None, error=None):
        self.steps, self.evaluations, self.last, self.error = [], [], last, error

    def on_step(self, record):
        self.steps.append(record)
        if self.error is not None and record["step"] == self.last:
            raise self.error

    def on_evaluation(self, record):
        self.evaluations.append(record)

    def should_stop(self):
        return self.error is None and self.last is not None and self.steps[-1]["step"] >= self.last


def train(folder, output, callbacks=None, **options):
    return onebit.train(PRETRAIN, data=folder / "store", valid=folder / "store", output=output,
                        callbacks=callbacks, threads=1, **options)


def test_callbacks_get_the_lines_of_the_log(folder, pretrained, tmp_path):
    recorder = Recorder()
    train(folder, tmp_path / "run", recorder)
    lines = [json.loads(text) for text in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert recorder.steps == [line for line in lines if line["kind"] == "step"]
    assert recorder.evaluations == [line for line in lines if line["kind"] == "evaluation"]
    assert [record["step"] for record in recorder.evaluations] == [0, 2, 4]


def test_a_stopped_run_resumes_to_the_same_files(folder, pretrained, tmp_path):
    train(folder, tmp_path / "whole_run")
    stopped = train(folder, tmp_path / "ended_run", Recorder(last=3))
    assert not stopped.finished and stopped.steps == 3 and stopped.metrics["step"] == 3
    resumed = train(folder, tmp_path / "ended_run", resume=True)
    assert resumed.finished and resumed.steps == 4
    last = "global_step4/model/model.safetensors"
    assert (tmp_path / "whole_run" / last).read_bytes() == \
        (tmp_path / "ended_run" / last).read_bytes()
    again = train(folder, tmp_path / "ended_run", resume="global_step2")
    assert again.metrics["step"] == 4
    assert (tmp_path / "whole_run" / last).read_bytes() == \
        (tmp_path / "ended_run" / last).read_bytes()


@pytest.mark.parametrize("error", [ValueError("no more"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_of_a_callback_arrives_and_the_run_resumes(folder, pretrained, tmp_path, error):
    recorder = Recorder(last=3, error=error)
    with pytest.raises(type(error)) as caught:
        train(folder, tmp_path / "run", recorder)
    assert caught.value is error
    assert [record["step"] for record in recorder.steps] == [1, 2, 3]
    assert train(folder, tmp_path / "run", resume=True).steps == 4


def test_an_exception_of_should_stop_arrives(folder, pretrained, tmp_path):
    class Raises(onebit.Callbacks):
        def should_stop(self):
            raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        train(folder, tmp_path / "run", Raises())


# The handler of Python runs where Python does: here in the callback.
def test_control_c_in_a_callback_raises_after_a_checkpoint(folder, pretrained, tmp_path):
    class Interrupts(Recorder):
        def on_step(self, record):
            super().on_step(record)
            if record["step"] == 3:
                signal.raise_signal(signal.SIGINT)

    before, recorder = signal.getsignal(signal.SIGINT), Interrupts()
    with pytest.raises(KeyboardInterrupt):
        train(folder, tmp_path / "run", recorder)
    assert [record["step"] for record in recorder.steps] == [1, 2, 3]
    assert (tmp_path / "run/latest").read_text().strip() == "global_step3"
    assert (tmp_path / "run/global_step3/model/model.safetensors").exists()
    assert signal.getsignal(signal.SIGINT) is before
    assert train(folder, tmp_path / "run", resume=True).steps == 4


def test_control_c_during_the_computation_saves_the_step(folder, pretrained, tmp_path):
    code = script(tmp_path, f"""
        import json, os, signal, subprocess, onebit
        recipe = json.loads({json.dumps(PRETRAIN | {"run": {"steps": 100000}})!r})
        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        begun = "until grep -q step.: {tmp_path / "run/metrics.jsonl"}; do sleep 0.1; done"
        subprocess.Popen(["sh", "-c", f"{{begun}} 2>/dev/null; kill -INT {{os.getpid()}}"])
        try:
            onebit.train(recipe, data={str(folder / "store")!r}, output={str(tmp_path / "run")!r},
                         threads=1, quiet=True)
        except KeyboardInterrupt:
            print("interrupted")
        assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
        """)
    done = subprocess.run([sys.executable, code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "interrupted\n", done.stderr
    last = [line["step"] for line in lines_of(tmp_path / "run") if isinstance(line, dict)][-1]
    assert (tmp_path / "run/latest").read_text().strip() == f"global_step{last}"
    assert (tmp_path / f"run/global_step{last}/model/model.safetensors").exists()


@pytest.mark.parametrize("rank", [0, 1])
def test_control_c_ends_the_waiting_for_ranks_that_do_not_come(rank, folder, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = script(tmp_path, f"""
        import json, os, signal, threading, onebit
        threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            onebit.train(json.loads({json.dumps(PRETRAIN)!r}), data={str(folder / "store")!r},
                         output={str(tmp_path / "run")!r}, threads=1, quiet=True)
        except KeyboardInterrupt:
            print("interrupted")
        """)
    ranks = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": str(port)}
    done = subprocess.run([sys.executable, code], capture_output=True, text=True, timeout=200,
                          env=os.environ | ranks)  # they would wait for 300 seconds
    assert done.stdout == "interrupted\n", done.stderr


def test_handlers_of_the_host_run_while_it_trains(folder, pretrained, tmp_path):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("usr1"))
    try:
        class Signals(onebit.Callbacks):
            def on_step(self, record):
                signal.raise_signal(signal.SIGUSR1)

        assert train(folder, tmp_path / "run", Signals()).finished
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == ["usr1"] * 4


def test_recipes_are_paths_or_dicts_with_overrides(folder, pretrained, tmp_path):
    path = write(tmp_path / "recipe.json", json.dumps(PRETRAIN))
    options = {"data": folder / "store", "threads": 1, "quiet": True}
    one = onebit.train(path, output=tmp_path / "by_path_", overrides=["run.steps=1"], **options)
    other = onebit.train(PRETRAIN, output=tmp_path / "by_dict_", overrides={"run.steps": 1},
                         **options)
    assert one.steps == other.steps == 1 and one.evaluation is None
    assert_same_runs(one.folder, other.folder)
    assert not any(line in ("start", "end") for line in lines_of(one.folder))  # quiet


def test_an_existing_run_is_refused(folder, pretrained, tmp_path):
    train(folder, tmp_path / "run")
    with pytest.raises(onebit.Error, match="resume"):
        train(folder, tmp_path / "run")


def test_a_run_does_not_hold_pythons_lock(folder, pretrained, tmp_path):
    counted, ended = [0], threading.Event()

    def count():
        while not ended.wait(0.001):
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    train(folder, tmp_path / "run")
    ended.set()
    thread.join()
    assert counted[0] > 10


def test_the_log_goes_to_a_function(folder, pretrained, tmp_path, capfd, monkeypatch):
    lines = []
    onebit.set_log(lambda level, text: lines.append((level, text)))
    try:
        train(folder, tmp_path / "run")
        assert capfd.readouterr().err == ""
        shown = "".join(text for _, text in lines)
        assert "step 4" in shown and "held out" in shown and lines[0][0] in ("info", "warning")
        failures = []
        monkeypatch.setattr("sys.unraisablehook", lambda failure: failures.append(failure.exc_type))
        onebit.set_log(lambda level, text: 1 / 0)  # ends nothing
        assert train(folder, tmp_path / "other", quiet=True).finished
        assert set(failures) == {ZeroDivisionError}
    finally:
        onebit.set_log(None)
