"""DeepSpeed's engine over onebit's optimizers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from onebit import _core, arguments
from onebit.deepspeed import checkpoints
from onebit.deepspeed.accelerator import get_accelerator
from onebit.deepspeed.config import DeepSpeedConfig
from onebit.deepspeed.layer_drop import ProgressiveLayerDrop
from onebit.deepspeed.optimizer import optimizer_of
from onebit.deepspeed.schedule import EngineSchedule
from onebit.deepspeed.settings import EngineSettings


class DeepSpeedEngine(EngineSettings, torch.nn.Module):
    """A model with its optimizer: engine(batch), engine.backward(loss), engine.step(). Names that
    the engine does not have are the model's, as with DeepSpeed's engine."""

    def __init__(self, model: torch.nn.Module, config: DeepSpeedConfig, optimizer: Any,
                 model_parameters: Iterable[Any] | None, lr_scheduler: Any,
                 local_rank: int = 0) -> None:
        super().__init__()
        arguments.instance(config, "config", DeepSpeedConfig, "a DeepSpeedConfig")
        arguments.small(local_rank, "local_rank")
        self.module = arguments.instance(model, "model", torch.nn.Module, "a torch.nn.Module")
        self.local_rank = local_rank
        self._config = config
        self._device = get_accelerator().device(local_rank)
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
            self.module.to(self._device)
        if model_parameters is not None:
            model_parameters = arguments.elements(model_parameters, "model_parameters",
                                                  "parameters or groups")
        if lr_scheduler is not None and not callable(lr_scheduler) and not hasattr(
                lr_scheduler, "step"):
            raise TypeError("lr_scheduler must be a schedule with step(), or a function that makes "
                            f"one of an optimizer, not {arguments.kind(lr_scheduler)}")
        parameters = model_parameters if model_parameters is not None else [
            parameter for parameter in model.parameters() if parameter.requires_grad]
        self.client_optimizer = optimizer
        self.optimizer = self.basic_optimizer = optimizer_of(optimizer, parameters, config)
        self.optimizer.cur_scale = config.initial_loss_scale if config.fp16_enabled else 1.0
        self.lr_scheduler = lr_scheduler
        if callable(lr_scheduler) and not hasattr(lr_scheduler, "step"):
            self.lr_scheduler = lr_scheduler(self.optimizer)
        elif lr_scheduler is None and config.scheduler_name is not None:
            self.lr_scheduler = EngineSchedule(self.optimizer, config.recipe())
        self.progressive_layer_drop = (
            ProgressiveLayerDrop(**config.pld_params) if config.pld_enabled else None)
        self.training_dataloader: Any = None
        self.global_steps = self.global_samples = self.skipped_steps = self.micro_steps = 0
        self._boundary: bool | None = None
        self._norm = 0.0
        self._has_warned = False
        self._seconds = dict.fromkeys(("forward", "backward", "step"), 0.0)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":
                raise
            return getattr(super().__getattr__("module"), name)

    @property
    def data_parallel_group(self) -> Any:
        """torch's group of all ranks, for collectives of the script's own."""
        return dist.group.WORLD

    def get_global_grad_norm(self) -> float:
        """The norm of the last update's gradient, averaged over ranks."""
        return self._norm

    def get_pld_theta(self) -> float | None:
        drop = self.progressive_layer_drop
        return drop.get_theta() if drop is not None else None

    # --- a step -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._seconds[part] += time.perf_counter() - began

    def _arithmetic(self) -> Any:
        if self.fp16_enabled():
            return torch.autocast(self.device.type, dtype=torch.float16)
        if self.bfloat16_enabled():
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def forward(self, *inputs: Any, **named: Any) -> Any:
        if self.progressive_layer_drop is not None and self.training:
            named |= self.progressive_layer_drop.get_state()
        with self._timed("forward"), self._arithmetic():
            return self.module(*inputs, **named)

    def is_gradient_accumulation_boundary(self) -> bool:
        """Whether the present micro-batch is the last of a step."""
        if self._boundary is not None:
            return self._boundary
        return (self.micro_steps + 1) % self.gradient_accumulation_steps() == 0

    def set_gradient_accumulation_boundary(self, is_boundary: bool) -> None:
        """Replaces the counting: the script says which micro-batch is the last of a step."""
        self._boundary = arguments.flag(is_boundary, "is_boundary")

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        with self.optimizer.no_sync():
            yield

    def backward(self, loss: torch.Tensor, allreduce_gradients: bool = True,
                 retain_graph: bool = False, scale_wrt_gas: bool = True) -> torch.Tensor:
        """Makes the backward pass of the loss of a micro-batch. As in DeepSpeed the loss is divided
        by the number of micro-batches of a step, and that quotient is returned.
        `allreduce_gradients` has no effect, as in DeepSpeed."""
        arguments.instance(loss, "loss", torch.Tensor, "a tensor")
        for name, value in (("allreduce_gradients", allreduce_gradients),
                            ("retain_graph", retain_graph), ("scale_wrt_gas", scale_wrt_gas)):
            arguments.flag(value, name)
        if loss.numel() != 1 or not loss.requires_grad:
            raise _core.Error(f"loss must be one number that depends on parameters: it has the shape "
                              f"{tuple(loss.shape)} and "
                              f"{'depends' if loss.requires_grad else 'does not depend'} on them")
        if not allreduce_gradients and not self._has_warned and self.global_rank == 0:
            print("onebit: backward(allreduce_gradients=False) has no effect: "
                  "set_gradient_accumulation_boundary(False) keeps gradients on their rank")
            self._has_warned = True
        if scale_wrt_gas:
            loss = loss / self.gradient_accumulation_steps()
        with self._timed("backward"), contextlib.ExitStack() as stack:
            scaled = loss
            if self.fp16_enabled():
                self.optimizer.cur_scale = self.optimizer.loss_scale
                scaled = loss * self.optimizer.cur_scale
            if not self.is_gradient_accumulation_boundary():
                stack.enter_context(self.optimizer.no_sync())
            torch.autograd.backward(scaled, retain_graph=retain_graph)
        return loss

    def allreduce_gradients(self, bucket_size: int | None = None) -> None:
        """Has no effect: gradients are sent during the backward pass."""

    def step(self, lr_kwargs: dict[str, Any] | None = None) -> None:
        """Ends a micro-batch. After the last of a step it makes an update and sets the gradients to
        zero."""
        is_boundary = self.is_gradient_accumulation_boundary()
        self.micro_steps += 1
        if not is_boundary:
            return
        if self.progressive_layer_drop is not None:
            self.progressive_layer_drop.update_state(self.global_steps)
        with self._timed("step"):
            self.optimizer.step()
            self.optimizer.zero_grad()
        report = self.optimizer.last_step
        self._norm = report["gradient_norm"]
        self.optimizer.overflow = not report["applied"]
        self.global_steps += 1
        self.global_samples += self.train_batch_size()
        if self.optimizer.overflow:
            self.skipped_steps += 1
        elif self.lr_scheduler is not None:
            self.lr_scheduler.step(**(lr_kwargs or {}))
        if self.global_steps % self.steps_per_print() == 0:
            self._print(report)

    def _print(self, report: dict[str, Any]) -> None:
        if self.global_rank == 0:
            print(f"step={self.global_steps}, skipped={self.skipped_steps}, lr={self.get_lr()}, "
                  f"phase={report['phase']}, norm={self._norm:.4g}", flush=True)
            if self.wall_clock_breakdown():
                parts = ", ".join(f"{name}={1e3 * seconds / self.steps_per_print():.4g}"
                                  for name, seconds in self._seconds.items())
                print(f"milliseconds a step: {parts}", flush=True)
        self._seconds = dict.fromkeys(self._seconds, 0.0)

    def was_step_applied(self) -> bool:
        return bool(self.optimizer.last_step.get("applied", False))

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def destroy(self) -> None:
        """Has no effect: the engine's memory is freed with it."""

    # --- data -------------------------------------------------------------------------------------

    def deepspeed_io(self, dataset: Any, batch_size: int | None = None, route: str = "train",
                     pin_memory: bool = True, data_sampler: Any = None,
                     collate_fn: Callable[..., Any] | None = None,
                     num_local_io_workers: int | None = None) -> Any:
        """Returns a loader of this rank's micro-batches. Every epoch of training has another order,
        which set_epoch() of its sampler chooses. Error: `dataset` has no length."""
        try:
            len(dataset)
        except TypeError as error:
            raise TypeError(f"dataset is of {arguments.kind(dataset)}, which has no length") from error
        for name, value in (("batch_size", batch_size),
                            ("num_local_io_workers", num_local_io_workers)):
            arguments.maybe(arguments.small, value, name)
        arguments.maybe(arguments.function, collate_fn, "collate_fn")
        if data_sampler is None:
            data_sampler = torch.utils.data.distributed.DistributedSampler(
                dataset, self.world_size, self.global_rank, shuffle=route == "train")
        return torch.utils.data.DataLoader(
            dataset, batch_size or self.train_micro_batch_size_per_gpu(), sampler=data_sampler,
            collate_fn=collate_fn, num_workers=num_local_io_workers or 0,
            pin_memory=pin_memory and self.device.type == "cuda",
            drop_last=self._config.dataloader_drop_last)

    # --- checkpoints ------------------------------------------------------------------------------

    def module_state_dict(self, exclude_frozen_parameters: bool = False) -> dict[str, Any]:
        """Returns the model's values, if wanted without those that are not trained."""
        arguments.flag(exclude_frozen_parameters, "exclude_frozen_parameters")
        frozen = {name for name, parameter in self.module.named_parameters()
                  if exclude_frozen_parameters and not parameter.requires_grad}
        return {name: value for name, value in self.module.state_dict().items()
                if name not in frozen}

    def load_module_state_dict(self, state_dict: dict[str, Any], strict: bool = True,
                               custom_load_fn: Callable[..., Any] | None = None) -> None:
        arguments.mapping(state_dict, "state_dict")
        arguments.flag(strict, "strict")
        if custom_load_fn is not None:
            arguments.function(custom_load_fn, "custom_load_fn")
            custom_load_fn(src=state_dict, dst=self.module)
        else:
            self.module.load_state_dict(state_dict, strict=strict)

    def save_checkpoint(self, save_dir: str, tag: str | None = None,
                        client_state: dict[str, Any] | None = None, save_latest: bool = True,
                        exclude_frozen_parameters: bool = False) -> bool:
        """Writes a checkpoint into save_dir/tag ("global_step12" without a tag). A run that resumes
        from it on as many ranks equals the uninterrupted run bit for bit, if it was written between
        two steps: gradients are not in it. Errors: ranks give different tags, a name of
        client_state is one of the engine's. Collective."""
        name = f"global_step{self.global_steps}" if tag is None else checkpoints.name_of(tag)
        checkpoints.save(self, arguments.path(save_dir, "save_dir"), name,
                         {} if client_state is None else client_state,
                         arguments.flag(save_latest, "save_latest"),
                         arguments.flag(exclude_frozen_parameters, "exclude_frozen_parameters"))
        return True

    def load_checkpoint(self, load_dir: str, tag: str | None = None,
                        load_module_strict: bool = True, load_optimizer_states: bool = True,
                        load_lr_scheduler_states: bool = True, load_module_only: bool = False,
                        custom_load_fn: Callable[..., Any] | None = None
                        ) -> tuple[str | None, dict[str, Any] | None]:
        """Returns (path, client state), or (None, None) if load_dir has no checkpoint. On another
        number of ranks the residuals are divided among them, and the run continues at the beginning
        of a step. Errors: the tag is missing, the state of a rank is missing, or it is DeepSpeed's.
        Collective."""
        for name, value in (("load_optimizer_states", load_optimizer_states),
                            ("load_lr_scheduler_states", load_lr_scheduler_states),
                            ("load_module_only", load_module_only),
                            ("load_module_strict", load_module_strict)):
            arguments.flag(value, name)
        folder = checkpoints.find(arguments.path(load_dir, "load_dir"), tag)
        if folder is None:
            return None, None
        state = checkpoints.load(folder / checkpoints.MODEL_FILE)
        self.load_module_state_dict(state["module"], load_module_strict, custom_load_fn)
        if not load_module_only:
            if load_optimizer_states:
                self.optimizer.load_state_dict(checkpoints.optimizer_state(self, folder, state))
            if load_lr_scheduler_states and self.lr_scheduler and state.get("lr_scheduler"):
                self.lr_scheduler.load_state_dict(state["lr_scheduler"])
            for name in checkpoints.COUNTERS:
                setattr(self, name, state.get(name, 0))
            self.micro_steps -= self.micro_steps % self.gradient_accumulation_steps()
        return str(folder / checkpoints.MODEL_FILE), checkpoints.client_state(state)

    def save_16bit_model(self, save_dir: str, save_filename: str = "pytorch_model.bin",
                         exclude_frozen_parameters: bool = False) -> bool:
        """Writes the model's values alone, in the config's 16-bit type. Collective."""
        kind = (torch.float16 if self.fp16_enabled() else
                torch.bfloat16 if self.bfloat16_enabled() else None)
        values = {name: value.to(kind) if kind and value.is_floating_point() else value
                  for name, value in self.module_state_dict(exclude_frozen_parameters).items()}
        checkpoints.save_values(self, arguments.path(save_dir, "save_dir"),
                                arguments.path(save_filename, "save_filename"), values)
        return True

    save_fp16_model = save_16bit_model
