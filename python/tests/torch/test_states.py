"""States on other numbers of ranks, and copies."""

import copy
import pickle

import pytest
import torch

import onebit
import onebit.torch as ot
from ranks import run_ranks
from test_optimizers import make_model, optimizer_of, refused, train, values_of


def trained_on(count, kind, steps=25):
    def work(ranks):
        model = make_model()
        optimizer = optimizer_of(kind, model.parameters(), 10, ranks=ranks, threads=1)
        train(model, optimizer, steps, ranks.rank)
        return (copy.deepcopy((model.state_dict(), optimizer.state_dict())),
                optimizer.full_state_dict())

    results = run_ranks(count, work)
    return results[0][0][0], [own[1] for own, _ in results], [full for _, full in results]


def go_on(count, kind, values, state, steps=30):
    def work(ranks):
        model = make_model(7)
        model.load_state_dict(values)
        optimizer = optimizer_of(kind, model.parameters(), 10, ranks=ranks, threads=1)
        optimizer.load_state_dict(state)
        losses = train(model, optimizer, steps, ranks.rank, 25)
        assert optimizer.last_step["phase"] == "compressed"
        assert optimizer.last_step["step"] == 25 + steps
        assert optimizer._flat.replicas_agree()
        return losses, values_of(model)

    return run_ranks(count, work)


@pytest.mark.parametrize("kind", ["adam", "lamb", "zeroone"])
@pytest.mark.parametrize("before, after", [(2, 4), (4, 2), (2, 1)])
def test_another_number_of_ranks_goes_on(kind, before, after):
    values, states, full = trained_on(before, kind)
    results = go_on(after, kind, values, states)
    assert all(torch.equal(one[1], results[0][1]) for one in results)
    losses = results[0][0]
    untrained = make_model()
    fresh = train(untrained, torch.optim.SGD(untrained.parameters(), lr=0.0), 30, 0, 25)
    assert sum(losses) < (0.95 if kind == "lamb" else 0.7) * sum(fresh)
    assert full[1:] == [None] * (before - 1)
    from_full = go_on(after, kind, values, full[0])
    assert torch.equal(from_full[0][1], results[0][1])


def test_the_same_number_of_ranks_can_load_the_states_of_all():
    values, states, full = trained_on(2, "adam")
    ends = []
    for state in (states, full[0]):
        ends += [one[1] for one in go_on(2, "adam", values, state)]

    def own(ranks):
        model = make_model(7)
        model.load_state_dict(values)
        optimizer = optimizer_of("adam", model.parameters(), 10, ranks=ranks, threads=1)
        optimizer.load_state_dict(states[ranks.rank])
        train(model, optimizer, 30, ranks.rank, 25)
        return values_of(model)

    assert all(torch.equal(end, own_end) for end in ends for own_end in run_ranks(2, own))


def test_states_survive_a_file(tmp_path):
    values, _, full = trained_on(2, "adam")
    torch.save(full[0], tmp_path / "optimizer.pt")
    read = torch.load(tmp_path / "optimizer.pt", weights_only=True)
    expected, found = (go_on(2, "adam", values, state) for state in (full[0], read))
    assert torch.equal(expected[0][1], found[0][1])


def test_a_state_that_is_not_enough_is_named():
    values, states, _ = trained_on(2, "adam")
    with pytest.raises(onebit.Error, match="of rank 1 of 2 and is loaded by rank 0 of 1"):
        go_on(1, "adam", values, states[1])
    with pytest.raises(onebit.Error, match="of rank 0 of 2 and is loaded by rank 1 of 2"):
        go_on(2, "adam", values, states[0])

    def other_model():
        ot.OnebitAdam(torch.nn.Linear(3, 3).parameters()).load_state_dict(states)

    refused("8 parameters and is loaded by an optimizer of 2", other_model)


# Of shapes that take equal room in the engine's buffers.
def test_a_state_of_another_model_is_refused():
    def of(inputs):
        model = torch.nn.Linear(inputs, 3)
        optimizer = ot.OnebitAdam(model.parameters(), threads=1)
        model(torch.ones(2, inputs)).sum().backward()
        optimizer.step()
        return optimizer

    refused(r"another model: parameter 0 of group 0 has the shape \(3, 5\), and had \(3, 4\)",
            lambda: of(5).load_state_dict(of(4).state_dict()))


def test_a_state_before_the_first_step_is_loaded():
    first, second = make_model(), make_model()
    optimizer = ot.OnebitAdam(first.parameters(), lr=1e-2)
    other = ot.OnebitAdam(second.parameters(), lr=1e-3)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["lr"] == 1e-2
    assert torch.equal(torch.tensor(train(first, optimizer, 3)),
                       torch.tensor(train(second, other, 3)))


def test_an_optimizer_that_has_stepped_takes_another_order():
    """Its parameters move to the places that the state has for them."""
    a, b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    parameters = [*a.parameters(), *b.parameters()]

    def step(optimizer, first, second):
        optimizer.zero_grad()
        second(first(torch.ones(2, 8)).tanh()).square().mean().backward()
        optimizer.step()

    optimizer = ot.OnebitAdam(parameters, lr=1e-2)
    for _ in range(3):
        step(optimizer, a, b)
    values = [parameter.detach().clone() for parameter in parameters]
    state = copy.deepcopy(optimizer.state_dict())
    step(optimizer, a, b)
    expected = [parameter.detach().clone() for parameter in parameters]
    other = ot.OnebitAdam(parameters, lr=1e-2)
    step(other, b, a)
    with torch.no_grad():
        for parameter, value in zip(parameters, values):
            parameter.copy_(value)
    assert other.state_dict()["onebit"]["order"] != state["onebit"]["order"]
    other.load_state_dict(state)
    step(other, a, b)
    assert all(torch.equal(parameter, value) for parameter, value in zip(parameters, expected))


@pytest.mark.parametrize("copies", [copy.deepcopy, copy.copy, pickle.dumps])
def test_copies_of_an_optimizer_are_refused(copies):
    optimizer = ot.OnebitAdam(make_model().parameters())
    refused("state_dict", lambda: copies(optimizer))
