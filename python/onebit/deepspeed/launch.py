"""The ranks of a script: what a launcher has set, and torch's process group."""

from __future__ import annotations

import datetime
import os
from typing import Any

import torch.distributed as dist

from onebit import _core, arguments
from onebit.deepspeed.accelerator import get_accelerator

# Variables of a process under mpirun: rank, ranks, rank on its host, ranks on its host.
_MPI_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
# DeepSpeed's backends of devices and of MPI, in place of which torch's group has the accelerator's.
# onebit's messages have connections of their own.
_OTHER_BACKENDS = ("nccl", "ccl", "hccl", "mpi")


def _read_mpi(port: int) -> bool:
    """Sets torchrun's variables from mpirun's. Returns False where there are none."""
    for rank, size, local, local_size in _MPI_VARIABLES:
        if rank not in os.environ or size not in os.environ:
            continue
        ranks = os.environ[size]
        if "MASTER_ADDR" not in os.environ:
            if os.environ.get(local_size, "1") != ranks:
                raise _core.Error("MASTER_ADDR is not set: give all ranks the address of rank 0's "
                                  "host, for example mpirun -x MASTER_ADDR=host1")
            os.environ["MASTER_ADDR"] = "127.0.0.1"
        os.environ |= {"RANK": os.environ[rank], "WORLD_SIZE": ranks}
        os.environ.setdefault("LOCAL_RANK", os.environ.get(local, "0"))
        os.environ.setdefault("MASTER_PORT", str(port))
        return True
    return False


def init_distributed(
    dist_backend: str | None = None,
    auto_mpi_discovery: bool = True,
    distributed_port: int = 29500,
    verbose: bool = True,
    timeout: datetime.timedelta = datetime.timedelta(minutes=30),
    init_method: str | None = None,
    dist_init_required: bool | None = None,
    config: Any = None,
    rank: int = -1,
    world_size: int = -1,
) -> None:
    """Makes torch's default process group, unless there is one. torchrun, DeepSpeed's launcher or
    mpirun has started the ranks. A process without a launcher is a single rank. `dist_backend`
    "nccl" and no value mean the accelerator's: NCCL on CUDA devices, with Gloo for tensors of the
    CPU, and otherwise Gloo. Errors: a launcher's variable is missing."""
    for name, check, value in (
            ("dist_backend", arguments.text, dist_backend),
            ("init_method", arguments.text, init_method),
            ("distributed_port", arguments.small, distributed_port),
            ("rank", arguments.small, rank), ("world_size", arguments.small, world_size)):
        arguments.maybe(check, value, name)
    arguments.instance(timeout, "timeout", datetime.timedelta, "a datetime.timedelta")
    if rank >= 0 and rank >= world_size:
        raise _core.Error(f"rank is {rank} and world_size is {world_size}: give both, the larger "
                          "one as world_size")
    if dist.is_initialized() or dist_init_required is False:
        return
    is_usual = dist_backend is None or dist_backend in _OTHER_BACKENDS
    backend = get_accelerator().backend if is_usual else str(dist_backend)
    if init_method is not None and "://" not in init_method:
        raise _core.Error(f"init_method is {init_method!r}: it must be an address such as "
                          "\"tcp://host1:29500\"")
    if not is_usual and not dist.is_backend_available(backend):
        raise _core.Error(f"dist_backend is {backend!r}, which torch.distributed does not have here: "
                          "\"gloo\" is for CPUs")
    has_ranks = "RANK" in os.environ or (auto_mpi_discovery and _read_mpi(distributed_port))
    if init_method is not None or rank >= 0:
        dist.init_process_group(backend, init_method=init_method, timeout=timeout, rank=rank,
                                world_size=world_size)
    elif has_ranks:
        os.environ.setdefault("LOCAL_RANK", "0")
        os.environ.setdefault("MASTER_PORT", str(distributed_port))
        for name in ("WORLD_SIZE", "MASTER_ADDR"):
            if name not in os.environ:
                raise _core.Error(f"RANK is set but {name} is not: start the script with torchrun")
        dist.init_process_group(backend, timeout=timeout)
    else:
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1"}
        os.environ.setdefault("LOCAL_RANK", "0")
        dist.init_process_group(backend, rank=0, world_size=1,
                                store=dist.HashStore())  # type: ignore[attr-defined]


def local_rank(args: Any = None) -> int:
    """Returns this rank's number on its host. Error: the script's --local_rank is another one."""
    given = getattr(args, "local_rank", None)
    found = os.environ.get("LOCAL_RANK")
    if given is not None and given >= 0 and found is not None and int(found) != given:
        raise _core.Error(f"--local_rank is {given} and LOCAL_RANK is {found}: start the script "
                          "with one launcher, torchrun or DeepSpeed's")
    if found is None and given is not None and given >= 0:
        os.environ["LOCAL_RANK"] = found = str(given)
    return int(found or 0)


def check_mpi(args: Any) -> None:
    """Error: --deepspeed_mpi without mpirun."""
    if getattr(args, "deepspeed_mpi", False) and not any(
            names[0] in os.environ for names in _MPI_VARIABLES):
        raise _core.Error("--deepspeed_mpi says that mpirun has started the ranks, but its "
                          "variables are not set: start the script with mpirun, or with torchrun "
                          "and without --deepspeed_mpi")
