"""DeepSpeed's engine: steps, schedules, checkpoints."""

import argparse
import json
import os
import pickle
import resource

import pytest
import torch
import torch.distributed as dist

import onebit
import onebit.deepspeed as deepspeed
from test_optimizers import batch_of, make_model, values_of

SQUAD_CONFIG = {  # the keys of BingBertSquad's config for 1-bit Adam
    "train_batch_size": 48, "train_micro_batch_size_per_gpu": 16, "steps_per_print": 100,
    "optimizer": {"type": "OnebitAdam",
                  "params": {"lr": 1e-3, "freeze_step": 400, "weight_decay": 0.0,
                             "bias_correction": False, "cuda_aware": False,
                             "comm_backend_name": "nccl"}},
    "gradient_clipping": 1.0,
}


@pytest.fixture(autouse=True)
def launcher(monkeypatch):
    """A process that no launcher has started."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    yield monkeypatch
    if dist.is_initialized():
        dist.destroy_process_group()
    for name in names:
        os.environ.pop(name, None)


def make_engine(config, seed=0, **options):
    model = make_model(seed)
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config,
                                **options)[0]


def train(engine, steps, first=0):
    for step in range(first, first + steps):
        for micro in range(engine.gradient_accumulation_steps()):
            inputs, targets = batch_of(step, micro)
            loss = torch.nn.functional.cross_entropy(engine(inputs), targets)
            engine.backward(loss)
            engine.step()


def test_the_calls_of_a_fine_tuning_script(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SQUAD_CONFIG | {"bf16": {"enabled": True}}))
    parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
    args = parser.parse_args(["--deepspeed", "--deepspeed_config", str(path)])
    model = make_model()
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.01},
              {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0}]
    model, optimizer, loader, schedule = deepspeed.initialize(
        args=args, model=model, model_parameters=groups, dist_init_required=True)
    assert loader is None and schedule is None
    assert model.bfloat16_enabled() and not model.fp16_enabled()
    assert model.train_micro_batch_size_per_gpu() == 16
    assert model.gradient_accumulation_steps() == 3
    model.train()
    for step in range(9):
        inputs, targets = batch_of(step, 0)
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        if step % 3 == 2:
            for group in optimizer.param_groups:
                group["lr"] = 1e-3 * (1 - step / 10)
        assert model.is_gradient_accumulation_boundary() == (step % 3 == 2)
        model.backward(loss)
        model.step()
    assert model.global_steps == 3 and model.get_global_grad_norm() > 0
    assert optimizer.last_step["learning_rate"] == pytest.approx(1e-3 * 0.2)
    assert set(model.module.state_dict()) == set(make_model().state_dict())


def test_a_step_is_adams_on_the_mean_of_its_micro_batches():
    config = {"train_batch_size": 48, "train_micro_batch_size_per_gpu": 16,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}}
    engine, theirs = make_engine(config), make_model()
    reference = torch.optim.AdamW(theirs.parameters(), lr=1e-3, weight_decay=0.1)
    train(engine, 6)
    for step in range(6):
        reference.zero_grad()
        for micro in range(3):
            inputs, targets = batch_of(step, micro)
            (torch.nn.functional.cross_entropy(theirs(inputs), targets) / 3).backward()
        reference.step()
    assert torch.allclose(values_of(engine.module), values_of(theirs), atol=2e-6)


def test_fp16_skips_updates_that_overflow():
    engine = make_engine(SQUAD_CONFIG | {"fp16": {"enabled": True, "initial_scale_power": 40}})
    assert engine.optimizer.cur_scale == 2 ** 40 and engine.dynamic_loss_scale()
    train(engine, 1)
    assert engine.optimizer.overflow and not engine.was_step_applied()
    train(engine, 29, 1)
    assert 0 < engine.skipped_steps < 30 and not engine.optimizer.overflow
    assert engine.optimizer.cur_scale < 2 ** 40


def test_schedules_of_the_config_and_rates_of_the_script():
    config = SQUAD_CONFIG | {"scheduler": {"type": "WarmupLR", "params": {
        "warmup_min_lr": 0, "warmup_max_lr": 1e-3, "warmup_num_steps": 10,
        "warmup_type": "linear"}}}
    engine = make_engine(config)
    rates = []
    for step in range(12):
        train(engine, 1, step)
        rates.append(engine.optimizer.last_step["learning_rate"])
    assert rates[-1] == pytest.approx(1e-3) and rates == sorted(rates) and rates[3] < rates[8]
    engine.optimizer.param_groups[0]["lr"] = 7e-4
    train(engine, 2, 12)
    assert engine.optimizer.last_step["learning_rate"] == 7e-4


@pytest.mark.parametrize("kind", ["OneBitAdam", "OneBitLamb", "AdamW"])
def test_a_resumed_run_is_the_unbroken_one(tmp_path, kind):
    params = {"lr": 1e-3} | ({} if kind == "AdamW" else {"freeze_step": 4})
    config = {"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 2,
              "optimizer": {"type": kind, "params": params}, "gradient_clipping": 1.0,
              "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 20}}}
    engine = make_engine(config)
    train(engine, 6)
    engine.save_checkpoint(str(tmp_path), client_state={"epoch": 3})
    train(engine, 5, 6)
    other = make_engine(config, seed=9)
    path, client = other.load_checkpoint(str(tmp_path))
    assert path.endswith("global_step6/mp_rank_00_model_states.pt") and client == {"epoch": 3}
    assert other.global_steps == 6
    train(other, 5, 6)
    assert torch.equal(values_of(engine.module), values_of(other.module))


def test_a_resumed_run_begins_a_step(tmp_path):
    """Also where a step has more passes than before, and where one was interrupted."""
    config = {"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 3,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
    engine = make_engine(config)
    train(engine, 5)
    engine.backward(engine(batch_of(9, 0)[0]).sum())
    engine.step()
    engine.save_checkpoint(str(tmp_path))
    for passes in (3, 4):
        other = make_engine(config | {"gradient_accumulation_steps": passes})
        other.load_checkpoint(str(tmp_path))
        train(other, 1, 5)
        assert other.global_steps == 6 and other.is_gradient_accumulation_boundary() is False
        assert other.micro_steps % passes == 0


def test_checkpoints_that_are_missing(tmp_path):
    engine = make_engine(SQUAD_CONFIG)
    assert engine.load_checkpoint(str(tmp_path)) == (None, None)
    engine.save_checkpoint(str(tmp_path), tag="first")
    engine.save_checkpoint(str(tmp_path), tag="first")
    with pytest.raises(onebit.Error, match="first"):
        engine.load_checkpoint(str(tmp_path), tag="second")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "latest"]


def test_data_is_divided_into_micro_batches():
    data = torch.utils.data.TensorDataset(torch.arange(64.0))
    _, _, loader, _ = deepspeed.initialize(model=make_model(), config=SQUAD_CONFIG,
                                           training_data=data)
    assert [len(batch[0]) for batch in loader] == [16, 16, 16, 16]


def test_layer_drop_is_the_models():
    class Dropping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.thetas = make_model(), []

        def forward(self, inputs, progressive_layer_drop=False, pld_theta=None):
            self.thetas.append(pld_theta if progressive_layer_drop else None)
            return self.inner(inputs)

    config = {"train_batch_size": 16, "prescale_gradients": True, "gradient_predivide_factor": 8,
              "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
              "progressive_layer_drop": {"enabled": True, "theta": 0.5, "gamma": 0.1}}
    model = Dropping()
    engine = deepspeed.initialize(model=model, config=config)[0]
    train(engine, 3)
    engine.eval()
    engine(batch_of(0, 0)[0])
    expected = [1.0, 1.0, 0.5 * 2.718281828 ** -0.1 + 0.5]
    assert model.thetas[:3] == pytest.approx(expected) and model.thetas[3] is None
    assert engine.get_pld_theta() < 1


def test_names_of_the_model_are_reached_through_the_engine():
    model = make_model()
    model.special = 7
    engine = deepspeed.initialize(model=model, config=SQUAD_CONFIG)[0]
    assert engine.special == 7 and engine.module is model
    with pytest.raises(AttributeError):
        engine.absent
    engine.set_train_batch_size(96)
    assert engine.get_batch_info() == (96, 16, 6)
    with pytest.raises(onebit.Error, match="multiple of 16"):
        engine.set_train_batch_size(100)


def test_optimizers_of_deepspeed_take_the_configs_settings():
    from onebit.deepspeed.ops.adam import DeepSpeedCPUAdam, FusedAdam
    from onebit.deepspeed.ops.lamb import FusedLamb

    config = {"train_batch_size": 48, "train_micro_batch_size_per_gpu": 16,
              "gradient_clipping": 1e-3}
    for kind in (FusedAdam, DeepSpeedCPUAdam, FusedLamb):
        model = make_model()
        optimizer = kind(model.parameters(), lr=1e-3, weight_decay=0.01)
        engine = deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]
        train(engine, 3)
        assert engine.optimizer is optimizer and engine.global_steps == 3
        assert optimizer.last_step["clip_coefficient"] < 1  # gradient_clipping of the config
    with pytest.raises(onebit.Error, match="freeze_step"):
        FusedAdam(make_model().parameters(), freeze_step=4)


def test_schedules_of_the_script_follow_updates():
    model = make_model()
    engine = deepspeed.initialize(
        model=model, config=SQUAD_CONFIG,
        lr_scheduler=lambda optimizer: torch.optim.lr_scheduler.LinearLR(
            optimizer, 0.1, 1.0, total_iters=4))[0]
    train(engine, 6)
    assert engine.get_lr() == [pytest.approx(1e-3)]
    assert engine.optimizer.last_step["learning_rate"] == pytest.approx(1e-3)


def test_parts_of_a_checkpoint(tmp_path):
    config = SQUAD_CONFIG | {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 20}}}
    engine = make_engine(config)
    train(engine, 4)
    engine.save_checkpoint(str(tmp_path), tag="four", client_state={"epoch": 3})
    values = values_of(engine.module).clone()
    for options in ({"load_module_only": True}, {"load_optimizer_states": False},
                    {"load_lr_scheduler_states": False}):
        other = make_engine(config, seed=9)
        path, client = other.load_checkpoint(str(tmp_path), "four", **options)
        assert client == {"epoch": 3} and torch.equal(values_of(other.module), values)
        only = "load_module_only" in options
        assert other.global_steps == (0 if only else 4)
        has_rate = not only and "load_lr_scheduler_states" not in options
        assert (other.lr_scheduler.last_batch_iteration == 4) == has_rate
        train(other, 1)
    taken = []
    other.load_checkpoint(str(tmp_path), custom_load_fn=lambda src, dst: taken.append(src))
    assert taken[0].keys() == engine.module.state_dict().keys()
    with pytest.raises(onebit.Error, match="`module`"):
        engine.save_checkpoint(str(tmp_path), client_state={"module": 1})
    engine.save_16bit_model(str(tmp_path))
    saved = torch.load(tmp_path / "pytorch_model.bin")
    assert saved.keys() == engine.module.state_dict().keys()


def test_deepspeeds_own_checkpoint_gives_its_model(tmp_path):
    theirs = make_model(3)
    (tmp_path / "one").mkdir()
    torch.save({"module": theirs.state_dict(), "optimizer": {}, "ds_version": "0.16.5",
                "global_steps": 7, "dp_world_size": 1, "epoch": 2},
               tmp_path / "one/mp_rank_00_model_states.pt")
    engine = make_engine(SQUAD_CONFIG)
    with pytest.raises(onebit.Error, match="load_optimizer_states=False"):
        engine.load_checkpoint(str(tmp_path), "one")
    _, client = engine.load_checkpoint(str(tmp_path), "one", load_optimizer_states=False)
    assert client == {"epoch": 2} and engine.global_steps == 7
    assert torch.equal(values_of(engine.module), values_of(theirs))


def test_a_save_that_fails_leaves_nothing_and_says_why(tmp_path):
    engine = make_engine(SQUAD_CONFIG)
    engine.save_checkpoint(str(tmp_path), "one")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(onebit.Error, match="model_states.pt cannot be written: File too large"):
            engine.save_checkpoint(str(tmp_path), "two")
        with pytest.raises(onebit.Error, match="cannot be written: File too large"):
            engine.save_16bit_model(str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        engine.save_checkpoint(str(tmp_path), "two", client_state={"f": lambda: 1})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "one"]
    assert (tmp_path / "latest").read_text() == "one"


def test_frozen_parameters_can_be_left_out_of_a_checkpoint(tmp_path):
    model = make_model()
    model[0].weight.requires_grad_(False)
    engine = deepspeed.initialize(model=model, config=SQUAD_CONFIG)[0]
    engine.save_checkpoint(str(tmp_path), exclude_frozen_parameters=True)
    with pytest.raises(RuntimeError, match="0.weight"):
        engine.load_checkpoint(str(tmp_path))
    assert engine.load_checkpoint(str(tmp_path), load_module_strict=False)[0] is not None


def test_optimizers_of_others_are_refused():
    model = make_model()
    with pytest.raises(onebit.Error, match="Adam"):
        make_engine(SQUAD_CONFIG, optimizer=torch.optim.Adam(model.parameters()))
