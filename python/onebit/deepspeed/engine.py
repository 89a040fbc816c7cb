"""DeepSpeed's engine over onebit's optimizers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from onebit import _core
from onebit.deepspeed import checkpoints
from onebit.deepspeed.config import batch_sizes, is_enabled, read_config
from onebit.deepspeed.schedule import EngineSchedule
from onebit.torch import EngineOptimizer

# Of the script and of its data, which the optimizer does not read.
_BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def init_distributed(dist_backend: str = "gloo", **_: Any) -> None:
    """Makes torch's default process group, unless there is one, from the variables of torchrun or
    the deepspeed launcher. DeepSpeed's backend "nccl" is for GPUs: here it means "gloo"."""
    if dist.is_initialized() or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return
    dist.init_process_group("gloo" if dist_backend == "nccl" else dist_backend)


def initialize(
    args: Any = None,
    model: torch.nn.Module | None = None,
    optimizer: Any = None,
    model_parameters: Iterable[Any] | None = None,
    training_data: Any = None,
    lr_scheduler: Any = None,
    distributed_port: int = 29500,
    mpu: Any = None,
    dist_init_required: bool | None = None,
    collate_fn: Callable[..., Any] | None = None,
    config: Any = None,
    mesh_param: Any = None,
    config_params: Any = None,
) -> tuple[DeepSpeedEngine, EngineOptimizer, Any, Any]:
    """Returns (engine, optimizer, data loader, schedule), as deepspeed.initialize() does. The loader
    is None without `training_data`, the schedule None without one in the config and
    `lr_scheduler`. Errors: a key of the config, an optimizer that is not one of onebit's."""
    if model is None:
        raise _core.Error("initialize() needs a model")
    for name, value in (("mpu", mpu), ("mesh_param", mesh_param)):
        if value is not None:
            raise _core.Error(f"initialize({name}=...) is for models that are divided among ranks; "
                              "here every rank has the whole model")
    if dist_init_required is not False:
        init_distributed()
    settings = read_config(args, config, config_params)
    engine = DeepSpeedEngine(model, settings, optimizer, model_parameters, lr_scheduler)
    loader = None
    if training_data is not None:
        loader = engine.deepspeed_io(training_data, collate_fn=collate_fn)
    return engine, engine.optimizer, loader, engine.lr_scheduler


class DeepSpeedEngine(torch.nn.Module):
    """A model with its optimizer: engine(batch), engine.backward(loss), engine.step()."""

    def __init__(self, model: torch.nn.Module, config: dict[str, Any], optimizer: Any,
                 model_parameters: Iterable[Any] | None, lr_scheduler: Any) -> None:
        super().__init__()
        self.module = model
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self._config = config
        recipe = {key: value for key, value in config.items() if key not in _BATCH_KEYS}
        parameters = model_parameters if model_parameters is not None else [
            parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = _optimizer_of(optimizer, parameters, recipe)
        self._sizes = batch_sizes(config, self.optimizer.ranks.size)
        self.lr_scheduler = lr_scheduler
        if callable(lr_scheduler) and not hasattr(lr_scheduler, "step"):
            self.lr_scheduler = lr_scheduler(self.optimizer)
        elif lr_scheduler is None and "scheduler" in config:
            self.lr_scheduler = EngineSchedule(self.optimizer, recipe)
        self.global_steps = self.global_samples = self.skipped_steps = self.micro_steps = 0
        self._boundary: bool | None = None
        self._norm = 0.0

    # --- settings ---------------------------------------------------------------------------------

    def train_batch_size(self) -> int:
        return self._sizes[0]

    def train_micro_batch_size_per_gpu(self) -> int:
        return self._sizes[1]

    def gradient_accumulation_steps(self) -> int:
        return self._sizes[2]

    def fp16_enabled(self) -> bool:
        return is_enabled(self._config, "fp16")

    def bfloat16_enabled(self) -> bool:
        return is_enabled(self._config, "bf16", "bfloat16")

    def gradient_clipping(self) -> float:
        return float(self._config.get("gradient_clipping", 0.0))

    def steps_per_print(self) -> int:
        return int(self._config.get("steps_per_print", 10))

    def wall_clock_breakdown(self) -> bool:
        return bool(self._config.get("wall_clock_breakdown", False))

    def zero_optimization(self) -> bool:
        return False

    def zero_optimization_stage(self) -> int:
        return 0

    @property
    def config(self) -> dict[str, Any]:
        return self._config

    @property
    def world_size(self) -> int:
        return self.optimizer.ranks.size

    @property
    def global_rank(self) -> int:
        return self.optimizer.ranks.rank

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def get_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_global_grad_norm(self) -> float:
        """The norm of the last update's gradient, averaged over ranks."""
        return self._norm

    def loss_scale(self) -> float:
        return self.optimizer.loss_scale

    # --- a step -----------------------------------------------------------------------------------

    def _arithmetic(self) -> Any:
        if self.fp16_enabled():
            return torch.autocast("cpu", dtype=torch.float16)
        if self.bfloat16_enabled():
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def forward(self, *inputs: Any, **named: Any) -> Any:
        with self._arithmetic():
            return self.module(*inputs, **named)

    def is_gradient_accumulation_boundary(self) -> bool:
        """Whether the present micro-batch is the last of a step."""
        if self._boundary is not None:
            return self._boundary
        return (self.micro_steps + 1) % self.gradient_accumulation_steps() == 0

    def set_gradient_accumulation_boundary(self, is_boundary: bool) -> None:
        """Replaces the counting: the script says which micro-batch is the last of a step."""
        self._boundary = is_boundary

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        with self.optimizer.no_sync():
            yield

    def backward(self, loss: torch.Tensor, allreduce_gradients: bool = True,
                 retain_graph: bool = False, scale_wrt_gas: bool = True) -> torch.Tensor:
        """Makes the backward pass of the loss of a micro-batch. As in DeepSpeed the loss is divided
        by the number of micro-batches of a step, and that quotient is returned."""
        if not allreduce_gradients:
            raise _core.Error("backward(allreduce_gradients=False) is not supported: use "
                              "set_gradient_accumulation_boundary(False)")
        if scale_wrt_gas:
            loss = loss / self.gradient_accumulation_steps()
        scaled = loss * self.optimizer.loss_scale if self.fp16_enabled() else loss
        with contextlib.ExitStack() as stack:
            if not self.is_gradient_accumulation_boundary():
                stack.enter_context(self.optimizer.no_sync())
            scaled.backward(retain_graph=retain_graph)
        return loss

    def allreduce_gradients(self, bucket_size: int | None = None) -> None:
        """Has no effect: gradients leave during the backward pass."""

    def step(self, lr_kwargs: dict[str, Any] | None = None) -> None:
        """Ends a micro-batch. After the last of a step it makes an update and sets the gradients to
        zero."""
        is_boundary = self.is_gradient_accumulation_boundary()
        self.micro_steps += 1
        if not is_boundary:
            return
        self.optimizer.step()
        self.optimizer.zero_grad()
        report = self.optimizer.last_step
        self._norm = report["gradient_norm"]
        self.global_steps += 1
        self.global_samples += self.train_batch_size()
        if not report["applied"]:
            self.skipped_steps += 1
        elif self.lr_scheduler is not None:
            self.lr_scheduler.step(**(lr_kwargs or {}))
        every = self.steps_per_print()
        if self.global_rank == 0 and every and self.global_steps % every == 0:
            print(f"step={self.global_steps}, skipped={self.skipped_steps}, lr={self.get_lr()}, "
                  f"phase={report['phase']}, norm={self._norm:.4g}", flush=True)

    def was_step_applied(self) -> bool:
        return bool(self.optimizer.last_step.get("applied", False))

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    # --- data -------------------------------------------------------------------------------------

    def deepspeed_io(self, dataset: Any, batch_size: int | None = None, route: str = "train",
                     pin_memory: bool = True, data_sampler: Any = None,
                     collate_fn: Callable[..., Any] | None = None,
                     num_local_io_workers: int | None = None) -> Any:
        """Returns a loader of this rank's micro-batches. Every epoch of training has another order,
        which set_epoch() of its sampler chooses."""
        if data_sampler is None:
            data_sampler = torch.utils.data.distributed.DistributedSampler(
                dataset, self.world_size, self.global_rank, shuffle=route == "train")
        return torch.utils.data.DataLoader(
            dataset, batch_size or self.train_micro_batch_size_per_gpu(), sampler=data_sampler,
            collate_fn=collate_fn, num_workers=num_local_io_workers or 0,
            drop_last=bool(self._config.get("dataloader_drop_last", False)))

    # --- checkpoints ------------------------------------------------------------------------------

    def save_checkpoint(self, save_dir: str, tag: str | None = None,
                        client_state: dict[str, Any] | None = None, save_latest: bool = True,
                        exclude_frozen_parameters: bool = False) -> bool:
        """Writes a checkpoint into save_dir/tag ("global_step12" without a tag). A run that resumes
        from it on as many ranks is the unbroken one to the bit. Collective."""
        if exclude_frozen_parameters:
            raise _core.Error("save_checkpoint(exclude_frozen_parameters=True) is not supported")
        model = dict(client_state or {})
        model |= {
            "module": self.module.state_dict(),
            "lr_scheduler": self.lr_scheduler.state_dict() if self.lr_scheduler else None,
            "global_steps": self.global_steps,
            "global_samples": self.global_samples,
            "skipped_steps": self.skipped_steps,
            "micro_steps": self.micro_steps,
            "dp_world_size": self.world_size,
            "ds_config": self._config,
        }
        checkpoints.save(save_dir, str(tag or f"global_step{self.global_steps}"),
                         self.optimizer.ranks, model,
                         {"optimizer": self.optimizer.state_dict()}, save_latest)
        return True

    _OWN_KEYS = ("module", "lr_scheduler", "global_steps", "global_samples", "skipped_steps",
                 "micro_steps", "dp_world_size", "ds_config")

    def load_checkpoint(self, load_dir: str, tag: str | None = None,
                        load_module_strict: bool = True, load_optimizer_states: bool = True,
                        load_lr_scheduler_states: bool = True, load_module_only: bool = False,
                        custom_load_fn: Callable[..., Any] | None = None
                        ) -> tuple[str | None, dict[str, Any] | None]:
        """Returns (path, client state), or (None, None) if load_dir has no checkpoint. Errors: the
        tag is missing, the state is another number of ranks'. Collective."""
        folder = checkpoints.find(load_dir, tag)
        if folder is None:
            return None, None
        state = checkpoints.load(folder / checkpoints.MODEL_FILE)
        if custom_load_fn is not None:
            custom_load_fn(src=state["module"], dst=self.module)
        else:
            self.module.load_state_dict(state["module"], strict=load_module_strict)
        if not load_module_only:
            if load_optimizer_states:
                if state["dp_world_size"] != self.world_size:
                    raise _core.Error(
                        f"{folder} is of {state['dp_world_size']} ranks and is loaded by "
                        f"{self.world_size}: load_checkpoint(load_optimizer_states=False) takes "
                        "its model")
                own = checkpoints.load(folder / checkpoints.rank_file(self.global_rank))
                self.optimizer.load_state_dict(own["optimizer"])
            if load_lr_scheduler_states and self.lr_scheduler and state["lr_scheduler"]:
                self.lr_scheduler.load_state_dict(state["lr_scheduler"])
            for name in ("global_steps", "global_samples", "skipped_steps", "micro_steps"):
                setattr(self, name, state[name])
        client = {key: value for key, value in state.items() if key not in self._OWN_KEYS}
        return str(folder / checkpoints.MODEL_FILE), client


def _optimizer_of(given: Any, parameters: Iterable[Any], recipe: dict[str, Any]) -> EngineOptimizer:
    if given is None:
        if "optimizer" not in recipe:
            raise _core.Error("there is no optimizer: the config needs a section `optimizer`")
        return EngineOptimizer(parameters, recipe)
    if callable(given) and not isinstance(given, torch.optim.Optimizer):
        given = given(parameters)
    if not isinstance(given, EngineOptimizer):
        raise _core.Error(
            f"initialize(optimizer=...) is a {type(given).__name__}, which averages nothing: name "
            "one in the config's section `optimizer`, or give one of onebit.torch")
    return given
