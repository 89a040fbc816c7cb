"""DeepSpeed's interface over DistributedDataParallel and torch's AdamW, with a record of the calls.

A script that runs under this module calls what DeepSpeed has: the signatures are DeepSpeed's. The
names of calls go to the file $DEEPSPEED_CALLS, as a list of JSON, from rank 0.
"""

import atexit
import contextlib
import json
import os

import torch
import torch.distributed as dist

CALLS = []


def _record(name):
    CALLS.append(name)


@atexit.register
def _write():
    if "DEEPSPEED_CALLS" in os.environ and os.environ.get("RANK", "0") == "0":
        with open(os.environ["DEEPSPEED_CALLS"], "w", encoding="utf-8") as file:
            json.dump(CALLS, file)


def add_config_arguments(parser):
    _record("add_config_arguments")
    parser.add_argument("--deepspeed", action="store_true")
    parser.add_argument("--deepspeed_config")
    return parser


def init_distributed(dist_backend=None, auto_mpi_discovery=True, distributed_port=29500,
                     verbose=True, timeout=None, init_method=None, dist_init_required=None,
                     config=None, rank=-1, world_size=-1):
    _record("init_distributed")
    if not dist.is_initialized():
        dist.init_process_group("gloo")


def initialize(args=None, model=None, optimizer=None, model_parameters=None, training_data=None,
               lr_scheduler=None, distributed_port=29500, mpu=None, dist_init_required=None,
               collate_fn=None, config=None, mesh_param=None, config_params=None):
    _record("initialize")
    with open(args.deepspeed_config, encoding="utf-8") as file:
        engine = DeepSpeedEngine(model, list(model_parameters), json.load(file))
    return engine, engine.optimizer, None, None


class DeepSpeedEngine:
    def __init__(self, model, parameters, config):
        self.module = model
        self.config = config
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.device = torch.device("cpu")
        params = config["optimizer"]["params"]
        self.optimizer = torch.optim.AdamW(parameters, lr=params["lr"],
                                           betas=params.get("betas", (0.9, 0.999)))
        # As DeepSpeed, which averages parameters that a pass has not used as zeros.
        self._ranked = torch.nn.parallel.DistributedDataParallel(
            model, broadcast_buffers=False, find_unused_parameters=True)
        self._micro_steps = self.global_steps = 0

    def __call__(self, *inputs, **kwargs):
        _record("forward")
        is_narrow = self.config.get("bf16", {}).get("enabled", False)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_narrow):
            if not self.module.training:
                return self.module(*inputs, **kwargs)
            with contextlib.nullcontext() if self._is_boundary() else self._ranked.no_sync():
                return self._ranked(*inputs, **kwargs)

    def _is_boundary(self):
        return (self._micro_steps + 1) % self._accumulation() == 0

    def _accumulation(self):
        return self.config["train_batch_size"] // (
            self.config["train_micro_batch_size_per_gpu"] * dist.get_world_size())

    def backward(self, loss, retain_graph=False, scale_wrt_gas=True):
        _record("backward")
        loss = loss / self._accumulation()
        if self._is_boundary():
            loss.backward()
        else:
            with self._ranked.no_sync():
                loss.backward()
        return loss

    def step(self, lr_kwargs=None):
        _record("step")
        is_boundary = self._is_boundary()
        self._micro_steps += 1
        if not is_boundary:
            return
        if self.config.get("gradient_clipping"):
            torch.nn.utils.clip_grad_norm_(self.module.parameters(),
                                           self.config["gradient_clipping"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.global_steps += 1

    def train(self, mode=True):
        _record("train")
        self.module.train(mode)

    def eval(self):
        _record("eval")
        self.module.eval()

    def train_micro_batch_size_per_gpu(self):
        _record("train_micro_batch_size_per_gpu")
        return self.config["train_micro_batch_size_per_gpu"]

    def gradient_accumulation_steps(self):
        _record("gradient_accumulation_steps")
        return self._accumulation()

    def fp16_enabled(self):
        _record("fp16_enabled")
        return self.config.get("fp16", {}).get("enabled", False)

    def steps_per_print(self):
        _record("steps_per_print")
        return self.config.get("steps_per_print", 10)

    def wall_clock_breakdown(self):
        _record("wall_clock_breakdown")
        return self.config.get("wall_clock_breakdown", False)

    def get_lr(self):
        _record("get_lr")
        return [group["lr"] for group in self.optimizer.param_groups]

    def is_gradient_accumulation_boundary(self):
        _record("is_gradient_accumulation_boundary")
        return self._is_boundary()

    def save_checkpoint(self, save_dir, tag=None, client_state={}, save_latest=True,
                        exclude_frozen_parameters=False):
        _record("save_checkpoint")
        if dist.get_rank() == 0:
            folder = os.path.join(save_dir, tag)
            os.makedirs(folder, exist_ok=True)
            torch.save({"module": self.module.state_dict(), **client_state},
                       os.path.join(folder, "mp_rank_00_model_states.pt"))
        dist.barrier()
        return True
