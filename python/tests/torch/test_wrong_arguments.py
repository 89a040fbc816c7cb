"""Every function, class and method of onebit.torch and onebit.deepspeed with each argument wrong.
A name or an argument that is not in the table fails. The calls are
made in a process of their own."""

import argparse
import datetime
import json
import os
import pathlib
import sys

import pytest
import torch
import torch.distributed as dist

import onebit
import onebit.deepspeed as deepspeed
import onebit.torch as ot
from test_optimizers import batch_of, make_model, train
from wrong_arguments import (begin_child, call_with_each, checked_outcomes, public_names, run_child,
                             wrong_values)

# The classes that say only what they refuse have a test of their own (test_deepspeed_scripts.py).
REFUSALS = ("DeepSpeedTransformerConfig", "DeepSpeedTransformerLayer", "PipelineModule")
# EngineSettings is a base of the engine, whose methods are the engine's.
OF_THE_ENGINE = {"EngineSettings": deepspeed.DeepSpeedEngine.__mro__[1]}
# Nothing but Python's calls them.
HOOKS = ("DeepSpeedEngine.forward",)
# No arguments are right here: DistributedDataParallel alone makes a bucket, and the engine has the
# backward pass.
NEVER = ("torch.ddp_hook", "DeepSpeedOptimizer.backward")


def own_names():
    yield from public_names({f"torch.{name}": getattr(ot, name) for name in ot.__all__})
    found = {name: getattr(deepspeed, name) for name in deepspeed.__all__ if name not in REFUSALS}
    for name in public_names(found | OF_THE_ENGINE):
        if name != "EngineSettings" and name not in HOOKS:
            yield name


NAMES = list(own_names())
ACCEPTED = ("TypeError", "ValueError", "UnicodeEncodeError", "Error", "LookupError", "OSError",
            "RuntimeError")


def tensors():
    """Tensors that are wrong for most arguments."""
    return [torch.zeros(3, dtype=torch.float64), torch.zeros(4)[::2], torch.zeros(0),
            torch.zeros(3, device="meta"), torch.eye(2).to_sparse(), torch.zeros(2, 2).t(),
            torch.zeros(2, dtype=torch.complex64), torch.tensor(float("nan")), torch.zeros(())]


ADAM = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "bias_correction": True}
DEEPSPEEDS = ADAM | {"deepspeed": None, "eps_inside_sqrt": False, "max_grad_norm": 1.0,
                     "amsgrad": False, "cuda_aware": False, "comm_backend_name": "nccl"}
OPTIONS = {"process_group": None, "ranks_per_node": None, "threads": 1}
RUN = {"clip": "by_bucket", "overlap": True, "bucket_mb": 4, "steps": 100}
RECIPE = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
CONFIG = {"train_batch_size": 16, "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}}


def stepped():
    model = make_model()
    optimizer = ot.OnebitAdam(model.parameters(), lr=1e-3, freeze_step=2, threads=1)
    train(model, optimizer, 3)
    return optimizer


def fresh():
    return ot.OnebitAdam(make_model().parameters(), lr=1e-3, threads=1)


def engine():
    return deepspeed.initialize(model=make_model(), config=CONFIG)[0]


def loss_of(made):
    inputs, targets = batch_of(0, 0)
    return torch.nn.functional.cross_entropy(made(inputs), targets)


def without_group():
    if dist.is_initialized():
        dist.destroy_process_group()
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        os.environ.pop(name, None)
    return deepspeed


class Bound:
    """A method of a new object for each call, so that no call sees what another has left."""

    def __init__(self, make, name):
        self.make, self.name = make, name

    def renew(self):
        return getattr(self.make(), self.name)


class Setter(Bound):
    """A property that is written."""

    def renew(self):
        made = self.make()

        def set_it(value):
            setattr(made, self.name, value)

        return set_it


def table():
    """For each call the function, or what makes it, and arguments with which it works."""
    parameters = list(make_model().parameters())
    dataset = torch.utils.data.TensorDataset(torch.zeros(32, 2))
    state = stepped().state_dict()
    values = engine().module.state_dict()
    lamb = {"max_coeff": 10.0, "min_coeff": 0.01, "coeff_beta": 0.9, "factor_max": 4.0,
            "factor_min": 0.5, "factor_threshold": 0.1}
    zero_one = {"var_freeze_step": 10, "var_update_scaler": 16, "local_step_scaler": 32678,
                "local_step_clipper": 16}
    options = {"params": parameters, **OPTIONS, "ranks": None}
    saved = pathlib.Path("saved").absolute()
    engine().save_checkpoint(str(saved), tag="one")
    rows = {
        "torch.EngineOptimizer": (ot.EngineOptimizer, {**options, "recipe": RECIPE}),
        "torch.OnebitAdam": (ot.OnebitAdam, DEEPSPEEDS | options | RUN | {"freeze_step": 10}),
        "torch.OnebitLamb": (ot.OnebitLamb, DEEPSPEEDS | options | RUN | lamb | {"freeze_step": 10}),
        "torch.ZeroOneAdam": (ot.ZeroOneAdam, DEEPSPEEDS | options | RUN | zero_one),
        "torch.ddp_hook": (ot.ddp_hook, {"optimizer": fresh(), "bucket": None}),
        "DeepSpeedOptimizer": (deepspeed.DeepSpeedOptimizer, {**options, "recipe": RECIPE}),
        "DeepSpeedOptimizer.backward": (Bound(
            lambda: deepspeed.DeepSpeedOptimizer(make_model().parameters(), RECIPE), "backward"),
            {"loss": None}),
        "DeepSpeedConfig": (deepspeed.DeepSpeedConfig, {"config": CONFIG, "mpu": None,
                                                        "mesh_device": None}),
        "DeepSpeedEngine": (deepspeed.DeepSpeedEngine, {
            "model": make_model(), "config": deepspeed.DeepSpeedConfig(CONFIG), "optimizer": None,
            "model_parameters": None, "lr_scheduler": None, "local_rank": 0}),
        "initialize": (deepspeed.initialize, {
            "args": None, "model": make_model(), "optimizer": None, "model_parameters": None,
            "training_data": dataset, "lr_scheduler": None, "distributed_port": 29500, "mpu": None,
            "dist_init_required": None, "collate_fn": None, "config": CONFIG, "mesh_param": None,
            "config_params": None}),
        "init_distributed": (Bound(without_group, "init_distributed"), {
            "dist_backend": "nccl", "auto_mpi_discovery": True, "distributed_port": 29500,
            "verbose": True, "timeout": datetime.timedelta(seconds=20), "init_method": None, "dist_init_required": None,
            "config": None, "rank": -1, "world_size": -1}),
        "add_config_arguments": (deepspeed.add_config_arguments, {
            "parser": argparse.ArgumentParser()}),
        "get_accelerator": (deepspeed.get_accelerator, {}),
        "log_dist": (deepspeed.log_dist, {"message": "x", "ranks": [0], "level": 20}),
    }
    optimizers = {
        "accumulation": (Setter, fresh, {"value": 2}), "add_param_group": (
            Bound, fresh, {"param_group": {"params": torch.nn.Linear(2, 2).parameters()}}),
        "add_settings": (Bound, fresh, {"settings": {"gradient_clipping": 1.0}}),
        "load_state_dict": (Bound, stepped, {"state_dict": state}),
        "step": (Bound, stepped, {"closure": None, "grad_scaler": None}),
        "zero_grad": (Bound, stepped, {"set_to_none": True})}
    for name, (kind, make, valid) in optimizers.items():
        rows[f"torch.EngineOptimizer.{name}"] = (kind(make, name), valid)

    def call(name, **valid):
        rows["EngineSettings." + name if hasattr(OF_THE_ENGINE["EngineSettings"], name)
             else "DeepSpeedEngine." + name] = (Bound(engine, name), valid)

    load = {"load_module_strict": True, "load_optimizer_states": True,
            "load_lr_scheduler_states": True, "load_module_only": False, "custom_load_fn": None}
    made = engine()
    call("allreduce_gradients", bucket_size=None)
    rows["DeepSpeedEngine.backward"] = (made.backward, {
        "loss": loss_of(made), "allreduce_gradients": True, "retain_graph": True,
        "scale_wrt_gas": True})
    call("deepspeed_io", dataset=dataset, batch_size=2, route="train", pin_memory=True,
         data_sampler=None, collate_fn=None, num_local_io_workers=0)
    call("load_checkpoint", load_dir=str(saved), tag="one", **load)
    call("load_module_state_dict", state_dict=values, strict=True, custom_load_fn=None)
    call("module_state_dict", exclude_frozen_parameters=False)
    call("save_16bit_model", save_dir="half", save_filename="model.bin",
         exclude_frozen_parameters=False)
    rows["DeepSpeedEngine.save_fp16_model"] = rows["DeepSpeedEngine.save_16bit_model"]
    call("save_checkpoint", save_dir="checkpoints", tag="one", client_state={}, save_latest=True,
         exclude_frozen_parameters=False)
    call("set_gradient_accumulation_boundary", is_boundary=True)
    call("set_lr", lr=1e-3)
    call("set_train_batch_size", train_batch_size=32)
    call("step", lr_kwargs=None)
    call("zero_grad", set_to_none=True)
    return rows


# Arguments that DeepSpeed has and that have no effect here, and those that anything fits.
ANY = {"mpu", "mesh_device", "mesh_param", "args", "config_params", "message", "verbose", "route",
       "pin_memory", "bucket_size", "deepspeed", "auto_mpi_discovery", "level", "set_to_none"}
# How an argument is called in messages, where that is not by its name.
ALSO = {"params": "param", "process_group": "group", "training_data": "dataset",
        "config_params": "config", "value": "accumulation", "betas": "beta",
        "model_parameters": "param", "tag": "tags", "optimizer": "section", "lr_kwargs": "argument",
        "data_sampler": "sampler", "max_grad_norm": "gradient_clipping", "recipe": "the optimizer's arguments",
        "settings": "the optimizer's arguments", "num_local_io_workers": "num_workers"}


def run_rows(names):
    """Prints a line with the name before each row's lines, and one behind them."""
    rows = table()
    for name in names:
        function, valid = rows[name]
        renew = function.renew if isinstance(function, Bound) else lambda kept=function: kept
        print(json.dumps({"row": name}), flush=True)
        call_with_each(renew, valid, [*wrong_values(), *tensors()], works=name not in NEVER)
        print(json.dumps({"end": name}), flush=True)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The child that makes all calls, and its lines by row."""
    done = run_child(__file__, *NAMES, cwd=tmp_path_factory.mktemp("calls"))
    rows, lines = {}, []
    for line in done.stdout.splitlines():
        if line.startswith('{"row"'):
            lines = []
        elif line.startswith('{"end"'):
            rows[json.loads(line)["end"]] = lines
        elif line.startswith("["):
            lines.append(json.loads(line))
    return done, rows


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arguments_are_errors_by_name(name, said):
    done, rows = said
    assert name in rows, f"{done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}"
    for argument, value, outcome, message, where in checked_outcomes(name, rows[name], ACCEPTED):
        # An index of its own: an object's own error.
        if outcome == "works" or argument in ANY or "an index of its own" in message:
            continue
        names = (argument, ALSO.get(argument, argument), value.strip("'\"")[:20])
        assert any(one in message for one in names), where


def test_the_process_survives(said):
    assert said[0].returncode == 0, said[0].stderr[-3000:]


if __name__ == "__main__":
    begin_child()
    onebit._core.set_log(lambda level, text: None)
    run_rows(sys.argv[1:])
