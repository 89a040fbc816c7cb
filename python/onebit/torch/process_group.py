"""The ranks of a process group of torch.distributed."""

from __future__ import annotations

import os
import secrets
import socket
from typing import Any

import torch.distributed as dist

from onebit import _core, arguments
from onebit.torch.warning import warn


def ranks_of(process_group: Any = None) -> _core.Ranks:
    """Returns the ranks of the group, by default torch's default group. A process without
    torch.distributed is a single rank. Collective.

    The ranks exchange over TCP connections of onebit's own, so that messages are sent during the
    backward pass without Python. torch's group only tells them where rank 0 is. GLOO_SOCKET_IFNAME
    chooses the network card. When a rank fails or ends, the others get PeerError. Errors: this rank
    is not in the group, there is a group without torch.distributed.
    """
    if not dist.is_available() or not dist.is_initialized():
        if process_group is not None:
            raise _core.Error("process_group= was given, but torch.distributed has no groups: call "
                              "torch.distributed.init_process_group() before")
        if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
            warn(
                f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, and torch.distributed has no group: this "
                "process trains alone. Call torch.distributed.init_process_group() before the "
                "optimizer is made")
        return _core.one_rank()
    # new_group() returns a number on ranks that are not in the group.
    if process_group is not None and process_group is not dist.GroupMember.NON_GROUP_MEMBER:
        arguments.instance(process_group, "process_group", dist.ProcessGroup,
                           "a group of torch.distributed")
    rank, size = dist.get_rank(process_group), dist.get_world_size(process_group)
    if size == 1:
        return _core.one_rank()
    if rank < 0:
        raise _core.Error(f"rank {dist.get_rank()} of torch.distributed is not in process_group=")
    hosts: list[Any] = [None] * size
    dist.all_gather_object(hosts, socket.gethostname(), group=process_group)
    on_one_machine = len(set(hosts)) == 1
    meeting: list[Any] = [None]
    if rank == 0:
        host = "127.0.0.1" if on_one_machine else _own_address()
        meeting = [(host, _free_port(), secrets.token_hex(16))]
    first = 0 if process_group is None else dist.get_global_rank(process_group, 0)
    dist.broadcast_object_list(meeting, src=first, group=process_group)
    host, port, token = meeting[0]
    return _core.ranks_over_tcp(rank, size, host, port, token,
                                os.environ.get("GLOO_SOCKET_IFNAME", ""), on_one_machine)


def _own_address() -> str:
    """Returns where the others reach this rank: MASTER_ADDR on rank 0 of all ranks, which may be
    another than rank 0 of the group. On other ranks it is the address from which they reach rank
    0."""
    master = os.environ.get("MASTER_ADDR", "")
    if dist.get_rank() == 0 and master:
        return master
    try:
        family, _, _, _, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def _free_port() -> int:
    with socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
