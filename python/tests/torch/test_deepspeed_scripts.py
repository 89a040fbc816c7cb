"""Scripts for DeepSpeed: their launchers, configs and imports."""

import argparse
import json
import os
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

import onebit
import onebit.deepspeed as deepspeed
from onebit import _core
from onebit.deepspeed.accelerator import CpuAccelerator
from test_deepspeed import SQUAD_CONFIG, launcher, make_engine, train  # noqa: F401 - a fixture
from test_optimizers import make_model, values_of


@pytest.mark.parametrize("change, message", [
    ({"gradient_cliping": 1.0}, "gradient_cliping"),
    ({"zero_optimization": {"stage": 2}}, "zero_optimization"),
    ({"train_batch_size": 50}, "train_batch_size 50"),
    ({"train_batch_size": "auto"}, "train_batch_size"),
    ({"optimizer": {"type": "Lion"}}, "Lion"),
    ({"optimizer": {"type": "OneBitAdam", "params": {"lrr": 1}}}, "^config: .*lrr"),
    ({"tensorboard": {"enabled": True}}, "tensorboard"),
    ({"amp": {"enabled": True}}, "amp"),
    ({"curriculum_learning": {"enabled": True}}, "curriculum_learning"),
])
def test_what_the_config_asks_and_cannot_be_done_is_named(change, message):
    with pytest.raises(onebit.Error, match=message):
        make_engine(SQUAD_CONFIG | change)


def test_ranks_of_mpi(launcher):
    parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
    args = parser.parse_args(["--deepspeed_mpi"])
    with pytest.raises(onebit.Error, match="torchrun"):
        deepspeed.initialize(args=args, model=make_model(), config=SQUAD_CONFIG)
    for name, value in (("RANK", 0), ("SIZE", 1), ("LOCAL_RANK", 0), ("LOCAL_SIZE", 1)):
        launcher.setenv(f"OMPI_COMM_WORLD_{name}", str(value))
    engine = deepspeed.initialize(args=args, model=make_model(), config=SQUAD_CONFIG)[0]
    assert (engine.global_rank, engine.local_rank) == (0, 0) and os.environ["WORLD_SIZE"] == "1"


def test_ranks_of_mpi_on_several_hosts_need_an_address(launcher):
    for name, value in (("RANK", 0), ("SIZE", 4), ("LOCAL_RANK", 0), ("LOCAL_SIZE", 2)):
        launcher.setenv(f"OMPI_COMM_WORLD_{name}", str(value))
    with pytest.raises(onebit.Error, match="MASTER_ADDR"):
        deepspeed.init_distributed(dist_backend="nccl")


def test_a_process_without_a_launcher_is_one_rank():
    deepspeed.init_distributed(dist_backend="nccl")
    assert dist.get_rank() == 0 and dist.get_world_size() == 1
    assert os.environ["LOCAL_RANK"] == "0" and deepspeed.comm.get_local_rank() == 0
    deepspeed.comm.barrier()
    assert deepspeed.comm.get_world_size() == 1


def test_the_local_rank_of_the_launcher_is_the_scripts(launcher):
    launcher.setenv("LOCAL_RANK", "0")
    with pytest.raises(onebit.Error, match="--local_rank is 3"):
        make_engine(SQUAD_CONFIG, args=argparse.Namespace(local_rank=3))
    assert make_engine(SQUAD_CONFIG, args=argparse.Namespace(local_rank=0)).local_rank == 0


def test_configs_are_given_in_one_of_three_ways(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SQUAD_CONFIG))
    named = argparse.Namespace(deepspeed_config=str(path))
    for options in ({"config": SQUAD_CONFIG}, {"config": str(path)}, {"config": path},
                    {"config_params": SQUAD_CONFIG}, {"args": named}):
        assert deepspeed.initialize(model=make_model(), **options)[0].train_batch_size() == 48
    with pytest.raises(onebit.Error, match="two configs"):
        deepspeed.initialize(model=make_model(), args=named, config=SQUAD_CONFIG)
    with pytest.raises(onebit.Error, match="no config"):
        deepspeed.initialize(model=make_model())


@pytest.mark.parametrize("text, message", [
    ('{"train_batch_size": 4, "train_batch_size": 8}', "`train_batch_size` is there twice"),
    ('{"train_batch_size": 4,}', "config.json.*commas"),
    ("[]", "JSON object"),
    ('{"train_batch_size": 4, "optimizer": {"type": "Adam", "params": {"lr": -1}}}',
     "config.json: key `optimizer.params.lr` is -1"),
])
def test_files_that_are_no_config(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(deepspeed.DeepSpeedConfigError, match=message):
        deepspeed.DeepSpeedConfig(str(path))


def test_a_config_has_deepspeeds_names():
    config = deepspeed.DeepSpeedConfig(SQUAD_CONFIG)
    assert config.train_micro_batch_size_per_gpu == 16
    assert config.gradient_accumulation_steps == 3 and config.gradient_clipping == 1.0
    assert config.optimizer_name == deepspeed.runtime.config.ONEBIT_ADAM_OPTIMIZER
    assert config.optimizer_params["freeze_step"] == 400 and not config.zero_enabled


HALF = {"fp16": {"enabled": True, "loss_scale": 0}}
LAMB = {"lr": 2e-3, "weight_decay": 0.01, "bias_correction": False, "max_coeff": 0.3,
        "min_coeff": 0.01}
TRANSPORT = {"cuda_aware": False, "comm_backend_name": "nccl"}


# The keys of the configs that DeepSpeed's examples for BERT have.
@pytest.mark.parametrize("kind, params, others", [
    ("Adam", {"lr": 3e-5, "weight_decay": 0.0, "bias_correction": False}, {}),
    ("OneBitAdam", {"lr": 4e-4, "weight_decay": 0.01, "bias_correction": False,
                    "freeze_step": 3} | TRANSPORT, {"prescale_gradients": False}),
    ("ZeroOneAdam", {"lr": 4e-4, "weight_decay": 0.01, "bias_correction": False,
                     "var_freeze_step": 3, "local_step_scaler": 4} | TRANSPORT, {}),
    ("Lamb", LAMB, {"sparse_attention": {"mode": "fixed", "block": 16}}),
    ("OneBitLamb", LAMB | TRANSPORT | {
        "freeze_step": 3, "coeff_beta": 0.9, "factor_max": 4.0, "factor_min": 0.5,
        "factor_threshold": 0.1}, {"wall_clock_breakdown": False}),
])
def test_configs_of_deepspeeds_examples_train(kind, params, others):
    engine = make_engine({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 16,
                          "steps_per_print": 2, "gradient_clipping": 1.0,
                          "optimizer": {"type": kind, "params": params}} | HALF | others)
    before = values_of(engine.module).clone()
    train(engine, 6)
    assert engine.global_steps == 6 and engine.skipped_steps < 6
    assert not torch.equal(before, values_of(engine.module))
    assert engine.optimizer_name() == kind.lower()
    assert engine.optimizer.optimizer.get_lamb_coeffs() == []


def test_every_name_that_is_refused_says_what_to_use():
    import importlib

    from onebit.deepspeed.modules import REFUSED

    for path, names in REFUSED.items():
        module = importlib.import_module(".".join(filter(None, ("onebit.deepspeed", path))))
        for name in names:
            kind = getattr(module, name)
            assert not isinstance(make_model(), kind)
            with pytest.raises(onebit.Error, match=f"{name} is not supported: .{{15}}"):
                kind(make_model(), 4)


def test_names_that_deepspeed_has_at_its_top():
    with pytest.raises(onebit.Error, match="--deepspeed_transformer_kernel"):
        deepspeed.DeepSpeedTransformerConfig(batch_size=4)
    with pytest.raises(onebit.Error, match="Sequential"):
        deepspeed.PipelineModule([])
    with pytest.raises(onebit.Error, match="whole"):
        with deepspeed.zero.Init():
            pass
    with deepspeed.zero.Init(enabled=False), deepspeed.zero.GatheredParameters([]):
        pass
    assert not hasattr(deepspeed, "no_such_name")
    inputs = torch.ones(2, requires_grad=True)
    deepspeed.checkpointing.checkpoint(torch.exp, inputs).sum().backward()
    assert inputs.grad is not None
    loader = deepspeed.utils.RepeatingLoader([1, 2])
    assert [next(loader) for _ in range(5)] == [1, 2, 1, 2, 1]


def test_the_accelerator_is_the_device_of_the_package_and_the_machine(monkeypatch):
    monkeypatch.delenv("DS_ACCELERATOR", raising=False)
    monkeypatch.setattr(_core, "has_cuda", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert deepspeed.get_accelerator().device_name(0) == "cpu"
    monkeypatch.setenv("DS_ACCELERATOR", "cuda")
    with pytest.raises(onebit.Error, match="this package was built without CUDA"):
        deepspeed.get_accelerator()
    monkeypatch.setattr(_core, "has_cuda", lambda: True)
    found = deepspeed.get_accelerator()
    assert found.device(1) == torch.device("cuda:1") and found.device_name() == "cuda"
    assert found.communication_backend_name() == "nccl"
    for name in dir(CpuAccelerator):
        if not name.startswith("_"):
            assert hasattr(found, name), name
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(onebit.Error, match="torch finds no CUDA device here"):
        deepspeed.get_accelerator()
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert deepspeed.get_accelerator().device() == torch.device("cpu")
    monkeypatch.setenv("DS_ACCELERATOR", "xpu")
    with pytest.raises(onebit.Error, match="DS_ACCELERATOR is 'xpu'"):
        deepspeed.get_accelerator()


def test_a_script_that_imports_deepspeed_runs_under_the_module(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import sys
import deepspeed
import deepspeed.comm as dist
from deepspeed.ops.adam import FusedAdam
from deepspeed.ops.transformer import DeepSpeedTransformerLayer
from deepspeed.utils.logging import logger
from deepspeed.accelerator import get_accelerator
from beside import VALUE

dist.init_distributed()
logger.info("begun")
print(deepspeed.__name__, VALUE, sys.argv[1:], dist.get_rank(), __name__)
""")
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    done = subprocess.run([sys.executable, "-B", "-m", "onebit.deepspeed", str(script), "--one"],
                          text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "onebit.deepspeed 5 ['--one'] 0 __main__\n" and "begun" in done.stderr
