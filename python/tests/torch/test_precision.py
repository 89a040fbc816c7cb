"""Gradient scalers, and parameters of 16 bits."""

import pytest
import torch

import onebit
import onebit.torch as ot
from ranks import run_ranks
from test_optimizers import batch_of, make_model, optimizer_of, train, values_of


# What is left of the loss at least, after some dozen updates: LAMB's are small.
SLOWER = {"adam": 0.8, "zeroone": 0.8, "lamb": 0.97}

pytestmark = pytest.mark.filterwarnings("ignore:GradScaler is going to stop passing itself")


def loss_of(model, step, rank, dtype=torch.float32):
    inputs, targets = batch_of(step, rank)
    return torch.nn.functional.cross_entropy(model(inputs.to(dtype)).float(), targets)


def scaled_step(model, optimizer, scaler, step, rank, spoil=False, unscales=False):
    optimizer.zero_grad()
    loss = loss_of(model, step, rank)
    scaler.scale(loss * float("inf") if spoil else loss).backward()
    if unscales:
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


@pytest.mark.parametrize("unscales", [False, True])
def test_a_scaler_changes_no_update(unscales):
    theirs = make_model()
    reference = torch.optim.AdamW(theirs.parameters(), lr=1e-3, weight_decay=0)

    def work(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), lr=1e-3, freeze_step=100, ranks=ranks,
                                  threads=1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 10, growth_interval=4)
        for step in range(10):
            scaled_step(model, optimizer, scaler, step, 0, unscales=unscales)
        return values_of(model), scaler.get_scale()

    train(theirs, reference, 10)
    for values, scale in run_ranks(2, work):
        assert torch.allclose(values, values_of(theirs), atol=1e-6)
        assert scale == 2.0 ** 12


@pytest.mark.parametrize("kind", ["adam", "lamb", "zeroone"])
def test_all_ranks_skip_what_one_rank_cannot_apply(kind):
    """In the first step, in the warm-up and after it, on the last rank alone."""
    def work(ranks):
        model = make_model()
        optimizer = optimizer_of(kind, model.parameters(), 6, ranks=ranks, threads=1)
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=100)
        skipped, losses = [], []
        for step in range(60):
            spoil = step in (0, 3, 15) and ranks.rank == ranks.size - 1
            before = values_of(model)
            losses.append(scaled_step(model, optimizer, scaler, step, ranks.rank, spoil))
            if not optimizer.last_step["applied"]:
                skipped.append(step)
                assert torch.equal(values_of(model), before)
        assert optimizer.last_step["phase"] == "compressed"
        assert optimizer.last_step["skipped_steps"] == 3
        return skipped, scaler.state_dict(), optimizer._flat.replicas_agree(), losses

    results = run_ranks(2, work)
    for skipped, state, agree, _ in results:
        assert skipped == [0, 3, 15] and state["scale"] == 8.0 and agree
    losses = results[0][3]
    assert sum(losses[-10:]) < SLOWER[kind] * sum(losses[1:11])


def test_scaler_and_optimizer_resume_to_the_bit():
    def build(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), lr=1e-3, freeze_step=4, ranks=ranks, threads=1)
        return model, optimizer, torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)

    def work(ranks):
        model, optimizer, scaler = build(ranks)
        for step in range(8):
            scaled_step(model, optimizer, scaler, step, ranks.rank, spoil=step == 2)
        other, resumed, new_scaler = build(ranks)
        other.load_state_dict(model.state_dict())
        resumed.load_state_dict(optimizer.state_dict())
        new_scaler.load_state_dict(scaler.state_dict())
        for step in range(8, 14):
            scaled_step(model, optimizer, scaler, step, ranks.rank)
            scaled_step(other, resumed, new_scaler, step, ranks.rank)
        assert resumed.last_step["skipped_steps"] == 1
        return torch.equal(values_of(model), values_of(other))

    assert run_ranks(2, work) == [True, True]


def test_scalers_that_differ_and_come_late_are_named():
    def differ(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), ranks=ranks, threads=1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** (ranks.rank + 3))
        scaled_step(model, optimizer, scaler, 0, ranks.rank)

    with pytest.raises(onebit.Error, match="has the scale"):
        run_ranks(2, differ)

    def late(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), ranks=ranks, threads=1)
        train(model, optimizer, 2, ranks.rank)
        scaled_step(model, optimizer, torch.amp.GradScaler("cpu"), 2, ranks.rank)

    with pytest.raises(onebit.Error, match="from the first step on"):
        run_ranks(2, late)


def test_a_scaler_that_is_off_changes_nothing():
    ours, theirs = make_model(), make_model()
    first, second = (ot.OnebitAdam(model.parameters(), freeze_step=100)
                     for model in (ours, theirs))
    for step in range(3):
        scaled_step(ours, first, torch.amp.GradScaler("cpu", enabled=False), step, 0)
    train(theirs, second, 3)
    assert torch.equal(values_of(ours), values_of(theirs))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_parameters_follow_masters_of_32_bits(dtype):
    """Updates that are too small for the parameter's type add up."""
    ours, masters = make_model().to(dtype), make_model().to(dtype).float()
    optimizer = ot.OnebitAdam(ours.parameters(), lr=1e-5, freeze_step=1000)
    reference = torch.optim.AdamW(masters.parameters(), lr=1e-5, weight_decay=0)
    begin, half_unit = values_of(ours), torch.finfo(dtype).eps / 2
    for step in range(30):
        optimizer.zero_grad()
        loss_of(ours, step, 0, dtype).backward()
        for mine, master in zip(ours.parameters(), masters.parameters()):
            assert mine.dtype == dtype and mine.grad.dtype == dtype
            master.grad = mine.grad.float()
        optimizer.step()
        reference.step()
        for mine, master in zip(ours.parameters(), masters.parameters()):
            # Half a unit in the last place, and what the two optimizers round differently.
            assert ((mine.float() - master).abs() <= master.abs() * half_unit + 1e-6).all()
    assert not torch.equal(values_of(ours), begin)


def test_what_a_script_writes_into_narrow_parameters_counts():
    """As load_state_dict() of the model does. What it leaves keeps its 32 bits."""
    model = make_model().to(torch.bfloat16)
    optimizer = ot.OnebitAdam(model.parameters(), lr=1e-5, freeze_step=1000)

    def step(number):
        optimizer.zero_grad()
        loss_of(model, number, 0, torch.bfloat16).backward()
        optimizer.step()

    for number in range(5):
        step(number)
    masters = [value.clone() for value in optimizer._flat._values]
    with torch.no_grad():
        model[0].bias[:3] = 0.5
    step(5)
    assert torch.allclose(model[0].bias[:3].float(), torch.tensor(0.5), atol=5e-3)
    for parameter, before, now in zip(model.parameters(), masters, optimizer._flat._values):
        kept = slice(3, None) if parameter is model[0].bias else slice(None)
        assert (now[kept] - before[kept]).abs().max() < 1e-4  # some updates, and no rounding
    values = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    model.load_state_dict(values)
    optimizer.zero_grad()
    optimizer.step()
    assert values_of(model).abs().max() < 1e-4


@pytest.mark.parametrize("kind", ["adam", "lamb", "zeroone"])
def test_ranks_with_narrow_parameters_agree_and_resume(kind):
    """Some layers are of 16 bits and some of 32."""
    def build(ranks):
        model = make_model(ranks.rank)
        model[0].to(torch.bfloat16), model[5].to(torch.bfloat16)
        model.insert(1, Cast(torch.float32)), model.insert(6, Cast(torch.bfloat16))
        return model, optimizer_of(kind, model.parameters(), 12, ranks=ranks, threads=1)

    def steps(model, optimizer, first, count, rank):
        losses = []
        for step in range(first, first + count):
            model.zero_grad()
            loss = loss_of(model, step, rank, torch.bfloat16)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def work(ranks):
        model, optimizer = build(ranks)
        losses = steps(model, optimizer, 0, 40, ranks.rank)
        other, resumed = build(ranks)
        other.load_state_dict(model.state_dict())
        resumed.load_state_dict(optimizer.state_dict())
        steps(model, optimizer, 40, 20, ranks.rank)
        steps(other, resumed, 40, 20, ranks.rank)
        assert optimizer.last_step["phase"] == "compressed"
        same = all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters()))
        return same, optimizer._flat.replicas_agree(), losses, model[0].weight.clone()

    results = run_ranks(2, work)
    assert all(same and agree for same, agree, _, _ in results)
    assert torch.equal(results[0][3], results[1][3])
    losses = results[0][2]
    assert sum(losses[-8:]) < SLOWER[kind] * sum(losses[:8])


class Cast(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, inputs):
        return inputs.to(self.dtype)


def test_narrow_gradients_accumulate_and_scale():
    def work(ranks):
        model = make_model().to(torch.float16)
        optimizer = ot.OnebitAdam(model.parameters(), lr=1e-3, freeze_step=4, ranks=ranks, threads=1)
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        for step in range(10):
            optimizer.zero_grad()
            with optimizer.no_sync():
                scaler.scale(loss_of(model, step, ranks.rank, torch.float16) / 2).backward()
            scaler.scale(loss_of(model, step + 50, ranks.rank, torch.float16) / 2).backward()
            scaler.step(optimizer)
            scaler.update()
        assert optimizer.last_step["applied"]
        return optimizer.last_step["gradient_norm"], optimizer._flat.replicas_agree()

    for norm, agree in run_ranks(2, work):
        assert agree and 0 < norm < 20  # the scale is not in it
