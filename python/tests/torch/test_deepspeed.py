"""Scripts written for DeepSpeed."""

import argparse
import json

import pytest
import torch

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
    train(engine, 30)
    assert 0 < engine.skipped_steps < 30
    assert engine.loss_scale() < 2 ** 40


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


@pytest.mark.parametrize("change, message", [
    ({"gradient_cliping": 1.0}, "gradient_cliping"),
    ({"zero_optimization": {"stage": 2}}, "zero_optimization"),
    ({"train_batch_size": 50}, "train_batch_size 50"),
    ({"train_batch_size": "auto"}, "train_batch_size"),
    ({"optimizer": {"type": "Lion"}}, "Lion"),
    ({"optimizer": {"type": "OneBitAdam", "params": {"lrr": 1}}}, "lrr"),
])
def test_what_the_config_asks_and_cannot_be_done_is_named(change, message):
    with pytest.raises(onebit.Error, match=message):
        make_engine(SQUAD_CONFIG | change)


def test_ranks_of_mpi_are_refused():
    parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
    with pytest.raises(onebit.Error, match="torchrun"):
        deepspeed.initialize(args=parser.parse_args(["--deepspeed_mpi"]), model=make_model())


def test_optimizers_of_others_are_refused():
    model = make_model()
    with pytest.raises(onebit.Error, match="Adam"):
        make_engine(SQUAD_CONFIG, optimizer=torch.optim.Adam(model.parameters()))
