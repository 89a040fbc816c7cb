"""Loops as scripts for PyTorch have them, and what cannot be trained that way."""

import copy
import warnings

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import onebit
import onebit.torch as ot
from ranks import run_ranks
from test_optimizers import batch_of, make_model, train, values_of

cross_entropy = torch.nn.functional.cross_entropy


def adamw_over_the_mean(steps, passes, ranks):
    """What all ranks' passes give with torch's optimizer in one process."""
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(ranks):
            for micro in range(passes):
                inputs, targets = batch_of(step, 10 * rank + micro)
                (cross_entropy(model(inputs), targets) / (ranks * passes)).backward()
        optimizer.step()
    return values_of(model)


@pytest.mark.parametrize("of_model", [False, True])
def test_passes_are_added_up_without_a_word(of_model):
    def work(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), lr=3e-3, weight_decay=0.01, freeze_step=100,
                                  ranks=ranks, threads=1)
        for step in range(5):
            (model if of_model else optimizer).zero_grad()
            for micro in range(3):
                inputs, targets = batch_of(step, 10 * ranks.rank + micro)
                (cross_entropy(model(inputs), targets) / 3).backward()
            optimizer.step()
        return values_of(model)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, second = run_ranks(2, work)
    assert [one.filename for one in caught if "accumulation" in str(one.message)] == [__file__] * 2
    assert torch.equal(first, second)
    assert torch.allclose(first, adamw_over_the_mean(5, 3, 2), atol=2e-5)


def test_passes_that_wait_for_step_anyway_are_no_news():
    def work(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=100, ranks=ranks, threads=1,
                                  overlap=False)
        for _ in range(2):
            inputs, targets = batch_of(0, ranks.rank)
            cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_ranks(2, work)
    assert not [one for one in caught if "accumulation" in str(one.message)]


def test_a_process_of_a_launcher_without_a_group_says_that_it_is_alone(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.warns(UserWarning, match="WORLD_SIZE is 2, .* this process trains alone") as caught:
        ot.OnebitAdam(make_model().parameters())
    assert caught[0].filename == __file__


def test_gradients_that_were_cleared_are_not_added_up():
    """A pass whose gradients nobody wants comes before training, for example to warm up."""
    def work(ranks, clear):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=100, ranks=ranks, threads=1)
        for _ in range(3):
            inputs, targets = batch_of(9, ranks.rank)
            cross_entropy(model(inputs), targets).backward()
            clear(model, optimizer)
        train(model, optimizer, 2, ranks.rank)
        return optimizer._waits

    assert run_ranks(2, lambda r: work(r, lambda model, _: model.zero_grad())) == [False] * 2
    assert run_ranks(2, lambda r: work(r, lambda _, one: one.zero_grad())) == [False] * 2
    assert run_ranks(2, lambda r: work(r, lambda _, one: one.zero_grad(False))) == [False] * 2


@pytest.mark.parametrize("count", [1, 2])
def test_two_optimizers_take_turns(count):
    """The loop of PyTorch's example of a GAN: the pass of the generator goes through the
    discriminator and adds to its gradients, which are then cleared."""
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits

    def nets():
        generator = torch.Generator().manual_seed(3)
        built = [torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(),
                                     torch.nn.Linear(16, width)) for width in (8, 1)]
        built[1][0] = torch.nn.Linear(8, 16)
        for net in built:
            for parameter in net.parameters():
                parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator)
        return built

    def loop(maker, samples):
        net_g, net_d = nets()
        optimizer_d, optimizer_g = maker(net_d.parameters()), maker(net_g.parameters())
        for step in range(6):
            parts = [torch.randn(8, 8 + 4, generator=torch.Generator().manual_seed(step * 10 + one))
                     for one in samples]
            real, noise = torch.cat(parts).split([8, 4], dim=1)
            net_d.zero_grad()
            loss_of(net_d(real), torch.ones(len(real), 1)).backward()
            fake = net_g(noise)
            loss_of(net_d(fake.detach()), torch.zeros(len(real), 1)).backward()
            optimizer_d.step()
            net_g.zero_grad()
            loss_of(net_d(fake), torch.ones(len(real), 1)).backward()
            optimizer_g.step()
        return torch.cat([values_of(net_g), values_of(net_d)])

    expected = loop(lambda parameters: torch.optim.AdamW(parameters, 1e-2, weight_decay=0.0),
                    range(count))
    for found in run_ranks(count, lambda ranks: loop(
            lambda parameters: ot.OnebitAdam(parameters, lr=1e-2, freeze_step=100, threads=1,
                                             ranks=ranks), [ranks.rank])):
        assert torch.allclose(found, expected, atol=2e-5)


def test_a_discriminator_with_one_pass_waits_if_it_is_told_to():
    def work(ranks, **options):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=100, ranks=ranks, threads=1,
                                  **options)
        for step in range(4):
            train(model, optimizer, 1, ranks.rank, first=step)
            inputs, targets = batch_of(step, ranks.rank)
            cross_entropy(model(inputs), targets).backward()  # another optimizer's pass
        return values_of(model)

    first, second = run_ranks(2, lambda ranks: work(ranks, overlap=False))
    assert torch.equal(first, second)
    with pytest.raises(onebit.Error, match="overlap=False"):
        run_ranks(2, work)


def test_a_later_optimizer_takes_the_parameters_over():
    model = make_model()
    first = ot.OnebitAdam(model.parameters(), lr=3e-3, freeze_step=100)
    train(model, first, 2)
    alone = copy.deepcopy(model)
    second = ot.OnebitAdam(model.parameters(), lr=3e-3, freeze_step=100)
    train(model, second, 10)
    train(alone, ot.OnebitAdam(alone.parameters(), lr=3e-3, freeze_step=100), 10)
    assert torch.equal(values_of(model), values_of(alone))
    with pytest.raises(onebit.Error, match="0 of group 0 is trained by another optimizer"):
        first.step()


@pytest.mark.parametrize("steps", [0, 2])
def test_parameters_that_are_thawed_or_frozen_later_are_named(steps):
    model = make_model()
    model[0].weight.requires_grad_(False)
    optimizer = ot.OnebitAdam(model.named_parameters(), freeze_step=100)
    train(model, optimizer, steps)
    model[0].weight.requires_grad_(True)
    with pytest.raises(onebit.Error, match="`0.weight` was frozen when the optimizer was made"):
        train(model, optimizer, 1)
    model[0].weight.requires_grad_(False)
    model[3].bias.requires_grad_(False)
    with pytest.raises(onebit.Error, match="`3.bias` has been frozen since"):
        train(model, optimizer, 1)
    model[3].bias.requires_grad_(True)
    train(model, optimizer, 1)


def test_ranks_with_other_rates_are_named():
    def work(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=100, ranks=ranks, threads=1)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        for step in range(200):
            train(model, optimizer, 1, ranks.rank, first=step)
            plateau.step(1.0 if ranks.rank == 0 and step > 9 else 1.0 - 0.001 * step)

    with pytest.raises(onebit.Error, match=r"group 0: `lr` is .* on rank [01], and between .* and 0.001 "):
        run_ranks(2, work)


@pytest.mark.parametrize("settings", [{"freeze_step": (5, 6)}, {"betas": ((0.9, 0.99), (0.9, 0.98))},
                                      {"max_grad_norm": (0.0, 1.0)}, {"bucket_mb": (1, 2)}])
def test_ranks_with_other_settings_are_named(settings):
    def work(ranks):
        model = make_model()
        own = {name: values[ranks.rank] for name, values in settings.items()}
        train(model, ot.OnebitAdam(model.parameters(), ranks=ranks, threads=1, **own), 8, ranks.rank)

    name = {"max_grad_norm": "gradient_clipping", "bucket_mb": "run.bucket_mb"}.get(
        *settings, f"optimizer.params.{next(iter(settings))}")
    with pytest.raises(onebit.Error, match=f"`{name}` is .* on rank . and .* on rank .: all ranks"):
        run_ranks(2, work)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
def test_a_pass_may_keep_its_graph():
    models = [make_model(), make_model()]
    optimizers = [torch.optim.AdamW(models[0].parameters(), lr=3e-3, weight_decay=0.0),
                  ot.OnebitAdam(models[1].parameters(), lr=3e-3, freeze_step=100)]
    for model, optimizer in zip(models, optimizers):
        for step in range(4):
            optimizer.zero_grad()
            inputs, targets = batch_of(step, 0)
            cross_entropy(model(inputs), targets).backward(create_graph=True)
            optimizer.step()
    assert torch.allclose(values_of(models[0]), values_of(models[1]), atol=2e-5)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_modules_share_their_weights(reentrant):
    """Each part that is computed again completes the shared gradient once."""
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make_model()
            self.out = torch.nn.Linear(17, 24)

        def forward(self, inputs):
            for _ in range(2):
                middle = checkpoint(self.inner, inputs, use_reentrant=reentrant)
                inputs = inputs + self.out(middle)
            return self.inner(inputs)

    def work(ranks):
        model = Twice()
        with torch.random.fork_rng():
            torch.manual_seed(1)
            torch.nn.init.normal_(model.out.weight, std=0.05)
        torch.nn.init.zeros_(model.out.bias)
        optimizer = ot.OnebitAdam(model.parameters(), lr=3e-3, freeze_step=100, ranks=ranks,
                                  threads=1)
        for step in range(4):
            inputs, targets = batch_of(step, ranks.rank)
            optimizer.zero_grad()
            cross_entropy(model(inputs.requires_grad_()), targets).backward()
            optimizer.step()
        return values_of(model)

    first, second = run_ranks(2, work)
    assert torch.equal(first, second)
