"""DeepSpeed's other modules: names that scripts import, and one sentence for what is not there.

`from onebit.deepspeed.ops.adam import FusedAdam` works because make_modules() has registered a
module of that name. A class that is not there can be imported, and isinstance() is false for every
object. Only its use is an error, which says what to use.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import types
from typing import Any

import torch
import torch.distributed as dist

from onebit import _core, arguments
from onebit.deepspeed import accelerator, comm, config, zero
from onebit.deepspeed.optimizer import FusedAdam, FusedLamb
from onebit.torch import OnebitAdam, OnebitLamb, ZeroOneAdam

def _make_logger() -> logging.Logger:
    """DeepSpeed's logger, whose lines go to standard error."""
    made = logging.getLogger("DeepSpeed")
    if not made.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(asctime)s] [%(levelname)s] %(message)s"))
        made.addHandler(handler)
        made.setLevel(logging.INFO)
        made.propagate = False
    return made


logger = _make_logger()


def log_dist(message: str, ranks: list[int] | None = None, level: int = logging.INFO) -> None:
    """Logs on the ranks of the list. -1, or no list, is every rank."""
    chosen = [] if ranks is None else [
        arguments.whole(one, "ranks[...]") for one in arguments.elements(ranks, "ranks", "ranks")]
    rank = dist.get_rank() if comm.is_initialized() else 0
    if not chosen or -1 in chosen or rank in chosen:
        logger.log(level, "[Rank %d] %s", rank, message)


class RepeatingLoader:
    """A loader that begins again at its end."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self._batches = iter(loader)

    def __iter__(self) -> RepeatingLoader:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except StopIteration:
            self._batches = iter(self.loader)
            return next(self._batches)


def checkpoint(function: Any, *inputs: Any) -> Any:
    """Computes a part of the model again in the backward pass, instead of keeping its activations."""
    return torch.utils.checkpoint.checkpoint(function, *inputs, use_reentrant=False)


def _nothing(*_: Any, **__: Any) -> None:
    """Has no effect here."""


def refused(name: str, instead: str) -> type:
    """Returns a class for a name that DeepSpeed has and onebit does not. Error, when it is called
    or one of its class's names is used: the sentence."""
    sentence = f"{name} is not supported: {instead}"

    class Refusal(type):
        def __call__(cls, *_: Any, **__: Any) -> Any:
            raise _core.Error(sentence)

        def __getattr__(cls, attribute: str) -> Any:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            raise _core.Error(sentence)

    return Refusal(name.rpartition(".")[2], (), {"__doc__": sentence})


_LAYER = ("it is a kernel of CUDA. Use the model's own encoder layer, and start the script without "
          "--deepspeed_transformer_kernel. `onebit convert --naming plain` turns a model of this "
          "layer into one of plain layers")
_SPARSE = "attention is dense. Start the script without --deepspeed_sparse_attention"
_PIPELINE = ("every rank has the whole model. Give deepspeed.initialize() the model as an ordinary "
             "torch.nn.Module, for example torch.nn.Sequential(*layers)")
_EXPERTS = "experts are divided among ranks, and here every rank has the whole model"
_INFERENCE = ("this package trains. For BERT models onebit.Encoder, Classifier, Tagger and "
              "QuestionAnswering predict")
_ZERO = "every rank keeps whole parameters, and no stage of ZeRO is there"
_SCHEDULE = "give the schedule in the config's section `scheduler`"

#: Names of DeepSpeed that scripts import, and that are refused when they are used.
REFUSED: dict[str, dict[str, str]] = {
    "": {"init_inference": _INFERENCE, "InferenceEngine": _INFERENCE,
         "DeepSpeedInferenceConfig": _INFERENCE, "tp_model_init": _PIPELINE,
         "DeepSpeedHybridEngine": _INFERENCE, "add_tuning_arguments": _SCHEDULE,
         "replace_transformer_layer": _LAYER, "revert_transformer_layer": _LAYER},
    "ops.transformer": {"DeepSpeedTransformerLayer": _LAYER, "DeepSpeedTransformerConfig": _LAYER},
    "ops.sparse_attention": {name: _SPARSE for name in (
        "SparseSelfAttention", "BertSparseSelfAttention", "SparseAttentionUtils", "SparsityConfig",
        "DenseSparsityConfig", "FixedSparsityConfig", "VariableSparsityConfig",
        "BigBirdSparsityConfig", "BSLongformerSparsityConfig")},
    "ops.lion": {name: "onebit has Adam, AdamW, Lamb and their 1-bit variants"
                 for name in ("FusedLion", "DeepSpeedCPULion")},
    "ops.adagrad": {"DeepSpeedCPUAdagrad": "onebit has Adam, AdamW, Lamb and their 1-bit variants"},
    "pipe": {"PipelineModule": _PIPELINE, "LayerSpec": _PIPELINE, "TiedLayerSpec": _PIPELINE},
    "runtime.pipe": {"ProcessTopology": _PIPELINE, "PipelineEngine": _PIPELINE},
    "moe.layer": {"MoE": _EXPERTS},
    "zero": {"TiledLinear": _ZERO},
    "runtime.lr_schedules": {name: _SCHEDULE for name in (
        "WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle", "LRRangeTest")},
    "profiling.flops_profiler": {
        name: "use torch.profiler" for name in ("FlopsProfiler", "get_model_profile")},
}

#: Names that work.
WORKING: dict[str, dict[str, Any]] = {
    "ops.adam": {"FusedAdam": FusedAdam, "DeepSpeedCPUAdam": FusedAdam},
    "ops.lamb": {"FusedLamb": FusedLamb},
    "runtime.config": {name: getattr(config, name) for name in dir(config)
                       if name.startswith("DeepSpeedConfig") or name.endswith("_OPTIMIZER")},
    "runtime.zero": {"Init": zero.Init, "GatheredParameters": zero.GatheredParameters},
    "runtime.fp16.onebit.adam": {"OnebitAdam": OnebitAdam},
    "runtime.fp16.onebit.lamb": {"OnebitLamb": OnebitLamb},
    "runtime.fp16.onebit.zoadam": {"ZeroOneAdam": ZeroOneAdam},
    "runtime.dataloader": {"RepeatingLoader": RepeatingLoader},
    "runtime.activation_checkpointing.checkpointing": {
        "checkpoint": checkpoint, "configure": _nothing, "is_configured": lambda: True,
        "reset": _nothing},
    "runtime.utils": {"see_memory_usage": _nothing},
    "utils": {"logger": logger, "log_dist": log_dist, "RepeatingLoader": RepeatingLoader},
    "utils.logging": {"logger": logger, "log_dist": log_dist},
    "comm.comm": {"init_distributed": comm.init_distributed},
    "accelerator.real_accelerator": {"get_accelerator": accelerator.get_accelerator},
}


def _module(package: str, path: str) -> Any:
    """Returns the module of a path, made with its packages if it is not there."""
    if not path:
        return sys.modules[package]
    name = f"{package}.{path}"
    if name not in sys.modules:
        parent = _module(package, path.rpartition(".")[0])
        module = types.ModuleType(name, "DeepSpeed's names of onebit.")
        module.__path__ = []  # so that it may have modules of its own
        module.__spec__ = importlib.util.spec_from_loader(name, None, is_package=True)
        sys.modules[name] = module
        setattr(parent, path.rpartition(".")[2], module)
    return sys.modules[name]


def make_modules(package: str) -> None:
    """Registers DeepSpeed's modules below `package`."""
    for path, names in WORKING.items():
        module = _module(package, path)
        for name, value in names.items():
            setattr(module, name, value)
    for path, sentences in REFUSED.items():
        module = _module(package, path)
        for name, sentence in sentences.items():
            full = ".".join(filter(None, ("deepspeed", path, name)))
            setattr(module, name, refused(full, sentence))


def add_aliases(package: str, alias: str) -> None:
    """Lets `import alias` and its modules mean the package and its modules."""
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            sys.modules[alias + name[len(package):]] = module
