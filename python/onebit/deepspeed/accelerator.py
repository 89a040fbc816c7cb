"""DeepSpeed's get_accelerator(): the device that engines train on."""

from __future__ import annotations

import os
from typing import Any

import torch

from onebit import _core


class CpuAccelerator:
    """The device of a script that asks DeepSpeed for its device."""

    #: torch's process group.
    backend = "gloo"

    def is_available(self) -> bool:
        return True

    def device_name(self, device_index: int | None = None) -> str:
        return "cpu"

    current_device_name = device_name

    def device(self, device_index: int | None = None) -> torch.device:
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def set_device(self, device_index: int) -> None:
        """Has no effect: there is one device."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Has no effect: operations of a CPU end before their call returns."""

    def communication_backend_name(self) -> str:
        return self.backend

    def is_bf16_supported(self) -> bool:
        return True

    def is_fp16_supported(self) -> bool:
        return True

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def on_accelerator(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == "cpu"

    def empty_cache(self) -> None:
        """Has no effect: the CPU's memory has no cache of torch's."""

    def memory_allocated(self, device_index: int | None = None) -> int:
        return 0

    max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated

    def pin_memory(self, tensor: torch.Tensor, align_bytes: int = 1) -> torch.Tensor:
        return tensor

    def range_push(self, message: str) -> None:
        """Has no effect: ranges are for the profilers of devices."""

    def range_pop(self) -> None:
        """Has no effect, as range_push()."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the accelerator is the CPU, which has no `{name}`")


class CudaAccelerator:
    """A script's CUDA device. Names that are not here are torch.cuda's."""

    #: torch's process group: tensors of both devices can be sent.
    backend = "cpu:gloo,cuda:nccl"

    def device_name(self, device_index: int | None = None) -> str:
        return "cuda" if device_index is None else f"cuda:{device_index}"

    def current_device_name(self) -> str:
        return f"cuda:{torch.cuda.current_device()}"

    def device(self, device_index: int | None = None) -> torch.device:
        return torch.device(self.device_name(device_index))

    def communication_backend_name(self) -> str:
        return "nccl"

    def is_fp16_supported(self) -> bool:
        return True

    def on_accelerator(self, tensor: torch.Tensor) -> bool:
        return tensor.is_cuda

    def pin_memory(self, tensor: torch.Tensor, align_bytes: int = 1) -> torch.Tensor:
        return tensor.pin_memory()

    def range_push(self, message: str) -> None:
        torch.cuda.nvtx.range_push(message)  # type: ignore[no-untyped-call]

    def range_pop(self) -> None:
        torch.cuda.nvtx.range_pop()  # type: ignore[no-untyped-call]

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cuda, name)


_CPU, _CUDA = CpuAccelerator(), CudaAccelerator()


def get_accelerator() -> CpuAccelerator | CudaAccelerator:
    """Returns the CUDA device if the package is built for one and the machine has one. As in
    DeepSpeed, the environment variable DS_ACCELERATOR chooses "cpu" or "cuda" instead. Error: it
    names another device, or one that cannot be used."""
    asked = os.environ.get("DS_ACCELERATOR")
    if asked not in (None, "", "cpu", "cuda"):
        raise _core.Error(f"DS_ACCELERATOR is {asked!r}: onebit trains on \"cpu\" and \"cuda\"")
    if asked == "cpu":
        return _CPU
    if _core.has_cuda() and torch.cuda.is_available():
        return _CUDA
    if asked == "cuda":
        raise _core.Error("DS_ACCELERATOR is 'cuda', but " + (
            "torch finds no CUDA device here" if _core.has_cuda() else
            "this package was built without CUDA (docs/python.md says how to build it)"))
    return _CPU
