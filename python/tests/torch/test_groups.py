"""Parameter groups with their own learning rates, weight decays and masks."""

import pytest
import torch

import onebit
import onebit.torch as ot
from ranks import run_ranks
from test_optimizers import make_model, optimizer_of, refused, train, values_of


def groups_of(model, decays=(0.1, 0.02, 0.0)):
    return [{"params": [model[0].weight, model[1].weight], "lr": 2e-3, "weight_decay": decays[0]},
            {"params": [model[3].weight, model[3].bias], "weight_decay": decays[1]},
            {"params": [model[0].bias, model[1].bias, model[5].weight, model[5].bias],
             "lr": 1e-4, "weight_decay": decays[2]}]


def change_rates(optimizer, step):
    """Writes rates as a fine-tuning script does before every step: one of them is 0 at times."""
    for number, group in enumerate(optimizer.param_groups):
        group["lr"] = 1e-3 * (1 - step / 40) * (number + 1 if step % 7 else number)


@pytest.mark.parametrize("count", [1, 2])
def test_warmup_equals_adamw_with_groups(count):
    theirs = make_model()
    reference = torch.optim.AdamW(groups_of(theirs), lr=1e-3)
    expected = []
    for step in range(20):
        change_rates(reference, step)
        train(theirs, reference, 1, first=step)
        expected.append(values_of(theirs))

    def work(ranks):
        ours = make_model(ranks.rank)
        optimizer = ot.OnebitAdam(groups_of(ours), lr=1e-3, freeze_step=1000, ranks=ranks, threads=1)
        for step in range(20):
            change_rates(optimizer, step)
            train(ours, optimizer, 1, first=step)
            assert torch.allclose(values_of(ours), expected[step], atol=1e-6)

    run_ranks(count, work)


@pytest.mark.parametrize("kind", ["adam", "lamb", "zeroone"])
@pytest.mark.parametrize("count", [2, 4])
def test_ranks_with_groups_agree_and_learn(kind, count):
    def work(ranks):
        model = make_model(ranks.rank)
        optimizer = optimizer_of(kind, groups_of(model), 20, ranks=ranks, threads=1)
        for group in optimizer.param_groups:
            group["lr"] *= 3
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.3, total_iters=80)
        losses = []
        for step in range(80):
            losses += train(model, optimizer, 1, ranks.rank, first=step)
            schedule.step()
        assert optimizer.last_step["phase"] == "compressed"
        assert optimizer.last_step["learning_rate"] == pytest.approx(
            max(group["lr"] for group in optimizer.param_groups), rel=0.05)
        return losses, optimizer._flat.replicas_agree()

    results = run_ranks(count, work)
    assert all(agree for _, agree in results)
    losses = results[0][0]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


@pytest.mark.parametrize("kind", ["adam", "lamb", "zeroone"])
def test_a_group_without_a_rate_stands_still(kind):
    def work(ranks):
        model = make_model()
        optimizer = optimizer_of(kind, [{"params": model[0].parameters(), "lr": 0.0},
                                        {"params": model[3].parameters()}], 5, ranks=ranks,
                                 threads=1)
        before = model[0].weight.clone(), model[3].weight.clone()
        train(model, optimizer, 12, ranks.rank)
        assert optimizer.last_step["phase"] == "compressed"
        return torch.equal(model[0].weight, before[0]), torch.equal(model[3].weight, before[1])

    assert run_ranks(2, work) == [(True, False)] * 2


@pytest.mark.parametrize("kind", ["adam", "lamb", "zeroone"])
def test_groups_resume_to_the_bit(kind):
    """0/1 Adam is saved between two exchanges, with the sums of its groups' rates."""
    def build(ranks, seed=0):
        model = make_model(seed)
        options = {"ranks": ranks, "threads": 1}
        if kind == "zeroone":
            return model, ot.ZeroOneAdam(groups_of(model), lr=3e-3, var_freeze_step=8,
                                         var_update_scaler=4, local_step_scaler=6,
                                         local_step_clipper=4, **options)
        return model, optimizer_of(kind, groups_of(model), 10, **options)

    def work(ranks):
        model, optimizer = build(ranks)
        train(model, optimizer, 23, ranks.rank)
        saved = {key: value.clone() for key, value in model.state_dict().items()}
        state = optimizer.state_dict()
        train(model, optimizer, 10, ranks.rank, 23)
        return saved, state, values_of(model)

    unbroken = run_ranks(2, work)
    differ = not torch.equal(unbroken[0][0]["0.weight"], unbroken[1][0]["0.weight"])
    assert differ == (kind == "zeroone")

    def resume(ranks):
        values, state, _ = unbroken[ranks.rank]
        model, optimizer = build(ranks, seed=5)
        model.load_state_dict(values)
        optimizer.load_state_dict(state)
        train(model, optimizer, 10, ranks.rank, 23)
        return values_of(model)

    for rank, values in enumerate(run_ranks(2, resume)):
        assert torch.equal(values, unbroken[rank][2])


@pytest.mark.parametrize("shape", ["whole", "flat", "rows"])
def test_masked_entries_stay_in_the_compressed_phase(shape):
    mask = torch.ones(96, 24)
    mask[10:, 3] = 0
    mask[50] = 0
    if shape == "rows":
        mask = mask[:, :1].clone()
    given = mask.reshape(-1) if shape == "flat" else mask

    def work(ranks):
        model = make_model()
        groups = [{"params": [model[0].weight], "exp_avg_mask": given, "weight_decay": 0.1},
                  {"params": [model[3].weight]}]
        optimizer = ot.OnebitAdam(groups, lr=1e-2, freeze_step=4, ranks=ranks, threads=1)
        train(model, optimizer, 4, ranks.rank)
        frozen = model[0].weight.clone()
        train(model, optimizer, 3, ranks.rank, 4)
        state = optimizer.state_dict()
        assert "exp_avg_mask" not in state["param_groups"][0]
        optimizer.load_state_dict(state)
        train(model, optimizer, 3, ranks.rank, 7)
        assert optimizer.last_step["phase"] == "compressed"
        return model[0].weight == frozen

    still = run_ranks(2, work)[0]
    assert torch.equal(still, (mask == 0).expand(96, 24))


def test_what_a_group_cannot_have_is_named():
    weight, other = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))

    def made(**settings):
        return ot.OnebitAdam([{"params": [weight]}, {"params": [other], **settings}])

    refused(r"group 1 has `betas` \(0.5, 0.9\)", lambda: made(betas=(0.5, 0.9)))
    refused("group 1 has `eps` 1e-06", lambda: made(eps=1e-6))
    refused("group 1: `lr` is -1", lambda: made(lr=-1.0))
    refused("group 1: `weight_decay` is nan", lambda: made(weight_decay=float("nan")))
    refused(r"shape \(3,\) does not fit parameter 0 of group 1",
            lambda: made(exp_avg_mask=torch.ones(3)))
    refused("other than 0 and 1", lambda: made(exp_avg_mask=torch.full((4,), 0.5)))
    made(betas=[0.9, 0.999], eps=1e-8, name="others")
    optimizer = made()
    optimizer.param_groups[1]["betas"] = (0.8, 0.999)
    refused("group 1 has `betas`", optimizer.step)


def test_groups_are_added_before_the_first_step_only():
    ours, theirs = make_model(), make_model()
    optimizer = ot.OnebitAdam(ours[0].parameters(), lr=1e-3, freeze_step=1000)
    optimizer.add_param_group({"params": ours[3].parameters(), "lr": 3e-3})
    train(ours, optimizer, 3)
    reference = torch.optim.AdamW([{"params": theirs[0].parameters()},
                                   {"params": theirs[3].parameters(), "lr": 3e-3}],
                                  lr=1e-3, weight_decay=0)
    train(theirs, reference, 3)
    assert torch.allclose(values_of(ours), values_of(theirs), atol=1e-6)
    with pytest.raises(onebit.Error, match="after the first step"):
        optimizer.add_param_group({"params": ours[5].parameters()})
