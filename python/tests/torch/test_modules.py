"""What modules and scripts do with an optimizer, and what it refuses."""

import inspect
import threading
import warnings

import pytest
import torch

import onebit
import onebit.torch as ot
from onebit.torch import optimizers
from ranks import run_ranks
from test_optimizers import batch_of, make_model, refused, train, values_of


class Odd(torch.nn.Module):
    """Parameters without dimensions, with three, and without elements."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(1.5))
        self.cube = torch.nn.Parameter(torch.linspace(-1, 1, 2 * 3 * 5).view(2, 3, 5))
        self.nothing = torch.nn.Parameter(torch.empty(0, 4))

    def forward(self, inputs):
        return self.scale * torch.einsum("bi,kij->bkj", inputs, self.cube) + self.nothing.sum()


def test_parameters_of_any_shape_train():
    def work(make):
        model = Odd()
        optimizer = make(model)
        for step in range(8):
            optimizer.zero_grad()
            inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(step))
            model(inputs).square().sum().backward()
            optimizer.step()
        return values_of(model)

    theirs = work(lambda model: torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0))
    ours = run_ranks(2, lambda ranks: work(lambda model: ot.OnebitAdam(
        model.parameters(), lr=1e-2, freeze_step=100, ranks=ranks, threads=1)))
    for values in ours:
        assert torch.allclose(values, theirs, atol=1e-6)
    run_ranks(2, lambda ranks: work(lambda model: ot.OnebitAdam(
        model.parameters(), lr=1e-2, freeze_step=3, ranks=ranks, threads=1)))


def test_a_closure_computes_the_loss():
    ours, theirs = make_model(), make_model()
    optimizer = ot.OnebitAdam(ours.parameters(), freeze_step=100)
    losses = []
    for step in range(4):
        inputs, targets = batch_of(step, 0)

        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(ours(inputs), targets)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    assert losses == train(theirs, ot.OnebitAdam(theirs.parameters(), freeze_step=100), 4)


@pytest.mark.parametrize("to_none", [False, True])
def test_gradients_are_cleared_either_way(to_none):
    ours, theirs = make_model(), make_model()
    optimizer = ot.OnebitAdam(ours.parameters(), freeze_step=100)
    other = ot.OnebitAdam(theirs.parameters(), freeze_step=100)
    for step in range(4):
        inputs, targets = batch_of(step, 0)
        optimizer.zero_grad(set_to_none=to_none)
        torch.nn.functional.cross_entropy(ours(inputs), targets).backward()
        optimizer.step()
        ours.zero_grad(set_to_none=to_none)
    train(theirs, other, 4)
    assert torch.equal(values_of(ours), values_of(theirs))


def test_compiled_modules_train():
    theirs = make_model()
    train(theirs, torch.optim.AdamW(theirs.parameters(), lr=1e-3, weight_decay=0), 6)
    ours = make_model()
    compiled = torch.compile(ours, backend="aot_eager")
    optimizer = ot.OnebitAdam(compiled.parameters(), lr=1e-3, freeze_step=100)
    train(compiled, optimizer, 6)
    assert torch.allclose(values_of(ours), values_of(theirs), atol=1e-6)


def test_memory_does_not_grow():
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    def work(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=20, ranks=ranks, threads=1)
        train(model, optimizer, 100, ranks.rank)
        ranks.barrier()
        before = resident()
        train(model, optimizer, 1000, ranks.rank, 100)
        return resident() - before

    # A leak of one gradient a step would be 48 MB a rank.
    assert max(run_ranks(2, work)) < 8e6


def test_gradients_that_change_on_their_way_are_reported_once():
    def work(ranks):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), freeze_step=2, ranks=ranks, threads=1)
        train(model, optimizer, 4, ranks.rank)
        for step in range(4, 7):
            inputs, targets = batch_of(step, ranks.rank)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_ranks(2, work)
    assert sum("max_grad_norm" in str(one.message) for one in caught) == 2  # one a rank


def test_two_levels():
    def work(ranks, per_node):
        model = make_model()
        optimizer = ot.OnebitAdam(model.parameters(), lr=3e-3, freeze_step=20, ranks=ranks,
                                  threads=1, ranks_per_node=per_node)
        losses = train(model, optimizer, 80, ranks.rank)
        assert optimizer.last_step["phase"] == "compressed"
        return losses, optimizer._flat.replicas_agree(), optimizer.last_step["wire_bytes"]

    sent = []
    for per_node in (1, 2):
        results = run_ranks(4, lambda ranks: work(ranks, per_node))
        assert all(agree for _, agree, _ in results)
        losses = results[0][0]
        assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
        sent.append(sum(result[2] for result in results))
    assert sent[0] != sent[1]
    with pytest.raises(onebit.Error, match="divide the 4 ranks"):
        run_ranks(4, lambda ranks: work(ranks, 3))


def made(parameter, name="weight"):
    return ot.OnebitAdam([(name, parameter)])


def test_parameters_that_cannot_be_trained_are_named():
    def parameter(*args, **options):
        return torch.nn.Parameter(torch.ones(*args, **options))

    refused("`weight` is on the meta device", lambda: made(parameter(4, device="meta")))
    refused("`weight` is torch.complex64", lambda: made(parameter(4, dtype=torch.complex64)))
    refused("`weight` is torch.float64", lambda: made(parameter(4, dtype=torch.float64)))
    refused("`weight` is torch.sparse_coo",
            lambda: made(torch.nn.Parameter(torch.eye(4).to_sparse())))
    refused(r"`weight` of strides \(1, 3\) is not contiguous",
            lambda: made(torch.nn.Parameter(torch.ones(2, 3).t())))
    embedding = torch.nn.Embedding(10, 4, sparse=True)
    optimizer = made(embedding.weight)
    embedding(torch.tensor([1, 2])).sum().backward()
    refused("gradient of parameter `weight` is torch.sparse_coo", optimizer.step)


@pytest.mark.parametrize("move", [
    lambda model: model.to(torch.bfloat16), lambda model: model.double(),
    lambda model: setattr(model[3].weight, "data", model[3].weight.data.clone())])
def test_parameters_that_have_moved_are_named(move):
    """Updates would not reach them."""
    model = make_model()
    optimizer = ot.OnebitAdam(model.named_parameters())
    train(model, optimizer, 2)
    state = optimizer.state_dict()
    move(model)
    optimizer.zero_grad()
    refused("parameter `(0|3).weight` has other memory than in the first step", optimizer.step)
    refused("other memory", lambda: optimizer.load_state_dict(state))


def test_modules_may_move_before_the_first_step():
    model = make_model()
    optimizer = ot.OnebitAdam(model.parameters(), lr=1e-2)
    model.double().float()
    losses = train(model, optimizer, 20)
    assert losses[-1] < losses[0]


def test_sharded_parameters_are_named():
    for mark, owner in (("ds_id", "ZeRO"), ("tensor_model_parallel", "tensor parallelism"),
                        ("_is_flat_param", "FSDP")):
        parameter = torch.nn.Parameter(torch.ones(4))
        setattr(parameter, mark, True)
        refused(f"`weight` is sharded over the ranks by {owner}", lambda: made(parameter))


def test_ranks_with_other_parameters_are_named():
    def work(ranks):
        ot.OnebitAdam(list(make_model().parameters())[ranks.rank:], ranks=ranks)

    with pytest.raises(onebit.Error, match="ZeroRedundancyOptimizer"):
        run_ranks(2, work)


# As in deepspeed/runtime/fp16/onebit/*.py, in this order.
SIGNATURES = {
    "OnebitAdam": "deepspeed=None lr=0.001 freeze_step=100000 bias_correction=True "
                  "betas=(0.9, 0.999) eps=1e-08 eps_inside_sqrt=False weight_decay=0.0 "
                  "max_grad_norm=0.0 amsgrad=False cuda_aware=False comm_backend_name='nccl'",
    "OnebitLamb": "deepspeed=None lr=0.001 freeze_step=100000 bias_correction=True "
                  "betas=(0.9, 0.999) eps=1e-08 eps_inside_sqrt=False weight_decay=0.0 "
                  "max_grad_norm=0.0 max_coeff=10.0 min_coeff=0.01 amsgrad=False cuda_aware=False "
                  "comm_backend_name='nccl' coeff_beta=0.9 factor_max=4.0 factor_min=0.5 "
                  "factor_threshold=0.1",
    "ZeroOneAdam": "deepspeed=None lr=0.001 bias_correction=True betas=(0.9, 0.999) eps=1e-08 "
                   "eps_inside_sqrt=False weight_decay=0.0 max_grad_norm=0.0 "
                   "var_freeze_step=100000 var_update_scaler=16 local_step_scaler=32678 "
                   "local_step_clipper=16 amsgrad=False cuda_aware=False comm_backend_name='nccl'",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_constructors_are_deepspeeds(name):
    found = [one for one in inspect.signature(getattr(ot, name)).parameters.values()
             if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert found[0].name == "params" and found[0].default is inspect.Parameter.empty
    assert " ".join(f"{one.name}={one.default!r}" for one in found[1:]) == SIGNATURES[name]


def test_arguments_without_effect_are_reported_once(monkeypatch):
    monkeypatch.setattr(optimizers, "_said", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            ot.OnebitAdam(make_model().parameters(), object(), cuda_aware=True,
                          comm_backend_name="mpi")
            ot.OnebitLamb(make_model().parameters(), factor_max=3.0)
    said = [str(one.message).split("=")[0] for one in caught if "no effect" in str(one.message)]
    assert sorted(said) == ["comm_backend_name", "cuda_aware", "deepspeed", "factor_max"]


def test_an_optimizer_goes_with_its_model():
    import gc
    import weakref
    model = make_model()
    optimizer = ot.OnebitAdam(model.parameters())
    train(model, optimizer, 2)
    engine = weakref.ref(optimizer._flat)
    del optimizer
    gc.collect()
    assert engine() is None and threading.active_count() >= 1
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def test_a_trained_model_is_saved_as_any_other(tmp_path):
    """What is written of a parameter is the parameter, and not the engine's buffer."""
    model = make_model()
    train(model, ot.OnebitAdam(model.parameters(), freeze_step=100), 2)
    torch.save(model[1].bias, tmp_path / "bias.pt")
    assert (tmp_path / "bias.pt").stat().st_size < 4096
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_model(model, str(tmp_path / "model.safetensors"))
    other = make_model(1)
    safetensors.load_model(other, str(tmp_path / "model.safetensors"))
    for one, two in zip(model.parameters(), other.parameters()):
        assert torch.equal(one, two)
