"""DeepSpeed's get_accelerator(): this package's only device, the CPU."""

from __future__ import annotations

from typing import Any

import torch


class CpuAccelerator:
    """The device of a script that asks DeepSpeed for its device."""

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
        return "gloo"

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


_CPU = CpuAccelerator()


def get_accelerator() -> CpuAccelerator:
    return _CPU
