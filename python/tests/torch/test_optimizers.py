"""The optimizers against torch's, and ranks against each other."""

import copy
import threading

import pytest
import torch

import onebit
import onebit.torch as ot
from ranks import run_ranks

SIZES = (24, 96, 17)


RANDOM = threading.Lock()  # torch has one generator for the process


def make_model(seed=0):
    with RANDOM:
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(SIZES[0], SIZES[1]), torch.nn.LayerNorm(SIZES[1]), torch.nn.Tanh(),
            torch.nn.Linear(SIZES[1], SIZES[1]), torch.nn.Tanh(),
            torch.nn.Linear(SIZES[1], SIZES[2]))


def batch_of(step, rank, size=16):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(size, SIZES[0], generator=generator)
    teacher = torch.Generator().manual_seed(7)
    matrix = torch.randn(SIZES[0], SIZES[2], generator=teacher)
    return inputs, (inputs @ matrix).argmax(dim=1)


def train(model, optimizer, steps, rank=0, first=0, clear="optimizer"):
    losses = []
    for step in range(first, first + steps):
        inputs, targets = batch_of(step, rank)
        if clear == "optimizer":
            optimizer.zero_grad()
        else:
            model.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def values_of(model):
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def optimizer_of(kind, parameters, freeze, **options):
    if kind == "zeroone":
        return ot.ZeroOneAdam(parameters, lr=3e-3, var_freeze_step=freeze, var_update_scaler=4,
                              local_step_scaler=50, local_step_clipper=4, **options)
    maker = {"adam": ot.OnebitAdam, "lamb": ot.OnebitLamb}[kind]
    return maker(parameters, lr=3e-3, freeze_step=freeze, **options)


@pytest.mark.parametrize("clear", ["optimizer", "model"])
def test_warmup_equals_adamw(clear):
    ours, theirs = make_model(), make_model()
    optimizer = ot.OnebitAdam(ours.parameters(), lr=1e-3, freeze_step=1000, weight_decay=0.1)
    reference = torch.optim.AdamW(theirs.parameters(), lr=1e-3, weight_decay=0.1)
    for step in range(20):
        train(ours, optimizer, 1, first=step, clear=clear)
        train(theirs, reference, 1, first=step)
        assert torch.allclose(values_of(ours), values_of(theirs), atol=1e-6)
    assert optimizer.last_step["phase"] == "warmup"


@pytest.mark.parametrize("kind", ["adam", "lamb", "zeroone"])
@pytest.mark.parametrize("count", [2, 4])
def test_ranks_agree_to_the_bit_after_200_steps(kind, count):
    def work(ranks):
        model = make_model(ranks.rank)  # the values of rank 0 count
        optimizer = optimizer_of(kind, model.parameters(), 60, ranks=ranks, threads=1)
        losses = train(model, optimizer, 200, ranks.rank)
        assert optimizer.last_step["phase"] == "compressed"
        return losses, optimizer._flat.replicas_agree()

    results = run_ranks(count, work)
    assert all(agree for _, agree in results)
    losses = results[0][0]
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])


def test_two_ranks_send_a_fraction_of_the_bytes():
    def work(ranks):
        model = torch.nn.Linear(512, 512)
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=2, ranks=ranks, threads=1)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(2, 512)).sum().backward()
            optimizer.step()
        return optimizer.last_step

    step = run_ranks(2, work)[0]
    assert step["wire_bytes"] < step["wire_bytes_dense16"] / 12


def test_accumulation_equals_one_large_batch():
    def work(ranks, parts, counts=False):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=100, ranks=ranks, threads=1)
        if counts:
            optimizer.accumulation = parts
        for step in range(8):
            inputs, targets = batch_of(step, ranks.rank)
            optimizer.zero_grad()
            for part in range(parts):
                rows = slice(part * 16 // parts, (part + 1) * 16 // parts)
                loss = torch.nn.functional.cross_entropy(model(inputs[rows]), targets[rows]) / parts
                if part + 1 < parts and not counts:
                    with optimizer.no_sync():
                        loss.backward()
                else:
                    loss.backward()
            optimizer.step()
        return values_of(model)

    whole = run_ranks(2, lambda ranks: work(ranks, 1))[0]
    parts = run_ranks(2, lambda ranks: work(ranks, 4))[0]
    assert torch.allclose(whole, parts, atol=2e-5)
    counted = run_ranks(2, lambda ranks: work(ranks, 4, counts=True))[0]
    assert torch.equal(parts, counted)


def test_passes_of_an_accumulation_leave_in_the_last():
    def work(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=100, ranks=ranks, threads=1)
        optimizer.accumulation = 2
        for step in range(4):
            optimizer.zero_grad()
            for micro in range(2):
                inputs, targets = batch_of(step, micro)
                torch.nn.functional.cross_entropy(model(inputs), targets).backward()
                assert optimizer._flat is None or optimizer._flat.has_begun == (micro == 1)
            optimizer.step()
        refused("accumulation must be at least 1", lambda: setattr(optimizer, "accumulation", 0))
        for _ in range(3):
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()

    with pytest.raises(onebit.Error, match="no_sync"):
        run_ranks(2, work)


def test_a_second_pass_without_no_sync_is_one_error():
    def work(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=100, ranks=ranks, threads=1)
        train(model, optimizer, 2, ranks.rank)
        inputs, targets = batch_of(5, ranks.rank)
        for _ in range(2):
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()

    with pytest.raises(onebit.Error, match="no_sync"):
        run_ranks(2, work)


@pytest.mark.parametrize("kind", ["adam", "lamb", "zeroone"])
@pytest.mark.parametrize("first", [5, 25])
def test_a_resumed_run_is_the_unbroken_one_to_the_bit(kind, first):
    def work(ranks):
        model = make_model()
        optimizer = optimizer_of(kind, model.parameters(), 10, ranks=ranks, threads=1)
        train(model, optimizer, first, ranks.rank)
        saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        train(model, optimizer, 15, ranks.rank, first)
        return saved, values_of(model)

    unbroken = run_ranks(2, work)

    def resume(ranks):
        (values, state), _ = unbroken[ranks.rank]
        model = make_model(5)
        model.load_state_dict(values)
        optimizer = optimizer_of(kind, model.parameters(), 10, ranks=ranks, threads=1)
        optimizer.load_state_dict(state)
        train(model, optimizer, 15, ranks.rank, first)
        return values_of(model)

    for rank, values in enumerate(run_ranks(2, resume)):
        assert torch.equal(values, unbroken[rank][1])


def test_schedulers_set_the_rate():
    ours, theirs = make_model(), make_model()
    optimizer = ot.OnebitAdam(ours.parameters(), lr=1e-3, freeze_step=1000)
    reference = torch.optim.AdamW(theirs.parameters(), lr=1e-3, weight_decay=0)
    schedules = [torch.optim.lr_scheduler.LinearLR(each, 0.1, 1.0, total_iters=5)
                 for each in (optimizer, reference)]
    for step in range(8):
        train(ours, optimizer, 1, first=step)
        train(theirs, reference, 1, first=step)
        for schedule in schedules:
            schedule.step()
    assert torch.allclose(values_of(ours), values_of(theirs), atol=1e-6)


def test_groups_without_decay_tied_and_frozen_parameters():
    def build():
        model = make_model()
        model[3].weight.requires_grad_(False)
        groups = [{"params": [model[0].weight, model[5].weight, model[5].weight][:2],
                   "weight_decay": 0.1},
                  {"params": [p for p in model.parameters()
                              if p.ndim < 2 or p is model[3].weight], "weight_decay": 0.0}]
        return model, groups

    ours, groups = build()
    frozen = ours[3].weight.clone()
    optimizer = ot.OnebitAdam(groups, lr=1e-3, freeze_step=1000)
    train(ours, optimizer, 6)
    theirs, groups = build()
    train(theirs, torch.optim.AdamW(groups, lr=1e-3), 6)
    assert torch.allclose(values_of(ours), values_of(theirs), atol=1e-6)
    assert torch.equal(ours[3].weight, frozen)


def test_unused_parameters_count_as_zero_gradients():
    def work(ranks):
        model = torch.nn.ModuleList([torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)])
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=2, ranks=ranks, threads=1)
        for step in range(6):
            model.zero_grad()
            used = model[step % 2]
            used(torch.full((2, 8), float(ranks.rank + 1))).sum().backward()
            optimizer.step()
        return optimizer._flat.replicas_agree()

    assert all(run_ranks(2, work))


def refused(message, make):
    with pytest.raises(onebit.Error, match=message):
        make()


def test_what_cannot_be_trained_is_refused_by_name():
    weight = torch.nn.Parameter(torch.ones(4))
    refused("is torch.float64", lambda: ot.OnebitAdam([weight.double().detach().requires_grad_()]))
    refused("nothing to train", lambda: ot.OnebitAdam([torch.nn.Parameter(torch.empty(0))]))
    other = torch.nn.Parameter(torch.ones(4))
    refused("onebit", lambda: ot.OnebitAdam([weight]).load_state_dict(
        torch.optim.Adam([other]).state_dict()))


@pytest.mark.parametrize("argument", [{"amsgrad": True}, {"eps_inside_sqrt": True},
                                      {"betas": (1.0, 0.9)}, {"freeze_step": 0}])
def test_wrong_arguments_are_errors_of_their_key(argument):
    def work():
        model = make_model()
        train(model, ot.OnebitAdam(model.parameters(), **argument), 1)

    refused(next(iter(argument)), work)


def test_parameters_that_share_memory_are_refused():
    memory = torch.zeros(8)
    shared, inside = torch.nn.Parameter(memory[:5]), torch.nn.Parameter(memory[4:])
    refused("0 of group 0 and 1 of group 0 share memory", lambda: ot.OnebitAdam([shared, inside]))
    refused("share memory", lambda: ot.OnebitAdam([shared, torch.nn.Parameter(memory[:2])]))
    optimizer = ot.OnebitAdam([shared])
    refused("share memory", lambda: optimizer.add_param_group({"params": [inside]}))
    ot.OnebitAdam([torch.nn.Parameter(memory[:4]), inside])


def test_settings_that_mean_nothing_are_refused():
    weight = torch.nn.Parameter(torch.ones(4))
    refused("clip is 'never'; it must be one of 'by_bucket', 'exact'",
            lambda: ot.OnebitAdam([weight], clip="never"))
    refused("`lr` is 1e\\+40: it must be a number from 0", lambda: ot.OnebitAdam([weight], lr=1e40))
    with pytest.raises(TypeError, match="OnebitLamb.. has no argument 'momentum'.*bucket_mb"):
        ot.OnebitLamb([weight], momentum=0.9)
    optimizer = ot.OnebitAdam([weight], threads=1)
    del optimizer.param_groups[0]["lr"]
    weight.sum().backward()
    refused("group 0 has no `lr`", optimizer.step)
