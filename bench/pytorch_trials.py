#!/usr/bin/env python3
"""PyTorch's side of compare_cuda_pytorch.py: runs one case in a process that may crash.

Finds the best micro-batch of a training step by trial until the memory is full, then tries to
compile the whole model at once. Prints each result immediately as a line of JSON, so that it
survives a crash or the end of the time:
    {"what": "machine", ...}, {"what": "ceiling", "tflops": ...},
    {"what": "trial", "case": ..., "micro": ..., "compiled": ..., "rate": ... or "failed": ...}

Choices in favour of PyTorch:
- bf16 weights with f32 master weights (pytorch_bert.py) instead of autocast, and fused AdamW
- TF32 for the remaining f32 products (set_float32_matmul_precision)
- torch.compile with static shapes (dynamic=False) if all batches have the same shape. Otherwise
  PyTorch's default: one static shape, then one for all lengths. Lengths are then multiples of 8, as
  its attention kernels require
- one layer is compiled and used for all layers, which takes seconds and loses only fusion across
  layers. If time is left, the whole model is compiled as well, and the faster one counts. Mode
  "default": at these sizes a step is bound by the GPU, so CUDA graphs ("reduce-overhead") save
  nothing, and "max-autotune-no-cudagraphs" takes longer to select kernels than a comparison lasts;
  --mode selects them
- attention's kernel: PyTorch's own choice first, then each of SDPA's backends at the best
  micro-batch (--sdpa best), because its choice is not always the fastest
- inputs stay on the device, the number of masked rows is fixed, and a step reads nothing back
- expandable memory segments, so that fragmentation does not reduce the micro-batch.
"""

import argparse
import contextlib
import gc
import json
import os
import statistics
import time

for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):  # new and old names
    os.environ.setdefault(name, "expandable_segments:True")

import torch  # noqa: E402

ROUND_SECONDS = 0.5
SDPA = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}


def with_sdpa(name):
    """A context in which scaled_dot_product_attention has one backend, or all for "default"."""
    if name == "default":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel(getattr(SDPBackend, SDPA[name]))


def report(what, **facts):
    print(json.dumps({"what": what, **facts}), flush=True)


class Timer:
    """Measures calls on a device, by the device's own clock if it has one."""

    def __init__(self, device):
        self.on_gpu = device == "cuda"

    def seconds(self, work, calls=1):
        if not self.on_gpu:
            began = time.perf_counter()
            for _ in range(calls):
                work()
            return time.perf_counter() - began
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        began.record()
        for _ in range(calls):
            work()
        ended.record()
        torch.cuda.synchronize()
        return began.elapsed_time(ended) / 1e3

    def median(self, work, rounds):
        """Returns the median seconds of a call, over rounds that are long enough to measure. The
        caller has warmed up."""
        calls = max(1, round(ROUND_SECONDS / max(1e-6, self.seconds(work)))) if self.on_gpu else 1
        return statistics.median(self.seconds(work, calls) / calls for _ in range(rounds))


def measure_ceiling(options, timer):
    """Measures the rate of products, with random numbers: zeros need less power and are faster."""
    side = 8192 if options.device == "cuda" else 512
    dtype = torch.float32 if options.compute == "f32" else torch.bfloat16
    a, b = (torch.randn(side, side, device=options.device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    for _ in range(3):
        torch.matmul(a, b, out=out)
    seconds = timer.median(lambda: torch.matmul(a, b, out=out), options.rounds)
    report("ceiling", tflops=2 * side ** 3 / seconds / 1e12, side=side)


class Trials:
    """The trials of one case: `make` creates its steps, `inputs_of` the inputs of a round."""

    def __init__(self, options, timer, case, make, inputs_of, varied=False):
        self.options, self.timer, self.case = options, timer, case
        self.make, self.inputs_of, self.varied = make, inputs_of, varied
        self.ends = time.monotonic() + options.seconds
        self.best, self.longest = None, 0.0
        self.sdpa = "default" if options.sdpa == "best" else options.sdpa

    def seconds_left(self):
        return self.ends - time.monotonic()

    def compile(self, step, how):
        kind = dict(dynamic=None if self.varied else False, mode=self.options.mode)
        torch.compiler.reset()
        if how == "whole":
            step.loss_of = torch.compile(step.loss, **kind)
        if how == "layers":
            for part in (step.model.bert.embeddings, *step.model.bert.encoder.layer):
                part.compile(**kind)
            if hasattr(step, "heads"):
                step.heads = torch.compile(step.head_losses, **kind)

    def measure(self, step, micro):
        """Returns sequences per second."""
        inputs = self.inputs_of(step, micro)

        def work():
            for one in inputs:
                step.run(one)

        # The first call compiles. If the shapes of inputs vary, all must have been seen.
        for _ in range(2 if len(inputs) > 1 else 3):
            work()
        return micro * len(inputs) / self.timer.median(work, self.options.rounds)

    def attempt(self, step, micro, how):
        """Measures and reports a trial. Returns whether it succeeded."""
        began = time.monotonic()
        if step.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        facts = dict(case=self.case, micro=micro, compiled=how, sdpa=self.sdpa)
        try:
            with with_sdpa(self.sdpa):
                rate = self.measure(step, micro)
        except torch.OutOfMemoryError:
            facts["failed"] = "out of memory"
        except Exception as error:  # no exception of a compiler may end the comparison
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            facts["failed"] = f"{type(error).__name__}: {said}"[:300]
        else:
            facts["rate"] = rate
            if self.best is None or rate > self.best["rate"]:
                self.best = dict(facts)
        if step.device == "cuda":
            facts["memory_bytes"] = torch.cuda.max_memory_reserved()
        facts["seconds"] = time.monotonic() - began
        self.longest = max(self.longest, facts["seconds"])
        report("trial", **facts)
        return "rate" in facts, facts.get("failed") == "out of memory"

    def made(self, how):
        """Frees the previous step's memory and returns a new compiled step."""
        gc.collect()
        if self.options.device == "cuda":
            torch.cuda.empty_cache()
        step = self.make()
        self.compile(step, how)
        return step

    def search(self, micros, how):
        """Tries micro-batches until memory or time is exhausted, without compiling if that
        fails."""
        step = self.made(how)
        for micro in micros:
            if self.best and self.seconds_left() < 1.5 * self.longest:
                return report("note", case=self.case, note=f"no time to try {micro}")
            worked, full = self.attempt(step, micro, how)
            gc.collect()
            if self.options.device == "cuda":
                torch.cuda.empty_cache()
            if full:
                return None
            if not worked:
                break
        else:
            return None
        if how != "none" and self.best is None:
            del step
            self.search(micros, "none")
        return None

    def backends(self, how):
        """Repeats the best micro-batch with each backend of SDPA. The fastest stays chosen."""
        if self.options.sdpa != "best" or self.best is None:
            return
        for name in SDPA:
            if self.seconds_left() < 1.5 * self.longest:
                report("note", case=self.case, note=f"no time to try SDPA's {name}")
                break
            self.sdpa = name
            self.attempt(self.made(how), self.best["micro"], how)
        self.sdpa = self.best["sdpa"]

    def whole(self):
        """Repeats the best micro-batch with the whole model compiled at once."""
        # Tracing 24 layers takes several times as long as tracing one.
        if self.best is None or self.seconds_left() < 45:
            return report("note", case=self.case, note="no time to compile the whole model as one")
        self.attempt(self.made("whole"), self.best["micro"], "whole")
        return None


def squad_cases(options, timer, precision):
    """Returns the Trials of windows padded to the maximal length, and of those grouped by
    length."""
    from pytorch_bert import QuestionAnsweringStep
    from window_batches import read_lengths, window_batches
    lengths = read_lengths(options.windows)

    def make():
        return QuestionAnsweringStep(options.preset, precision, options.device)

    def inputs_of(grouped):
        return lambda step, micro: [
            step.inputs(*one) for one in window_batches(lengths, micro, options.steps,
                                                        options.tokens, grouped, multiple=8)]

    return [Trials(options, timer, name, make, inputs_of(name == "grouped"), name == "grouped")
            for name in ("padded", "grouped")]


def pretraining_case(options, timer, precision):
    from pytorch_bert import PretrainingStep

    def make():
        return PretrainingStep(options.preset, precision, options.device)

    return Trials(options, timer, "pretraining", make,
                  lambda step, micro: [step.inputs(micro, options.tokens, options.masked)])


def run_case(options, timer):
    precision = "f32" if options.compute == "f32" else options.precision
    how = options.compile if options.compile in ("none", "layers") else "layers"
    if not options.windows:
        trials = pretraining_case(options, timer, precision)
        trials.search(options.micro, how)
        trials.backends(how)
        if options.compile == "all":
            trials.whole()
        return
    padded, grouped = squad_cases(options, timer, precision)
    # Each gets half of the time. The longest grouped batch needs as much memory as a padded batch,
    # so micro-batches smaller than the best padded one cannot be better.
    padded.ends -= options.seconds / 2
    padded.search(options.micro, how)
    padded.backends(how)
    grouped.sdpa = padded.sdpa
    least = padded.best["micro"] if padded.best else options.micro[0]
    grouped.search([micro for micro in options.micro if micro >= least], how)
    if options.compile == "all":
        padded.ends = grouped.ends
        padded.whole()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", required=True)
    parser.add_argument("--device", required=True, choices=("cpu", "cuda"))
    parser.add_argument("--compute", required=True, choices=("f32", "bf16"))
    parser.add_argument("--precision", required=True, choices=("bf16", "autocast"))
    parser.add_argument("--compile", required=True, choices=("none", "layers", "all"))
    parser.add_argument("--mode", required=True)
    parser.add_argument("--sdpa", default="best", choices=("best", "default", *SDPA),
                        help="attention's kernel; best: the fastest of all")
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--masked", type=int, default=0)
    parser.add_argument("--windows", help="lengths: SQuAD, with --tokens at most in a window")
    parser.add_argument("--micro", type=int, nargs="+", required=True, help="to be tried, in order")
    parser.add_argument("--steps", type=int, default=0, help="of windows, a round; 0: an epoch")
    parser.add_argument("--threads", type=int, required=True, help="of the CPU")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        return report("machine", torch=torch.__version__, device=None)
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    report("machine", torch=torch.__version__, device=device)
    if options.device == "cpu":
        torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("high")
    # The static shapes of all micro-batches count as recompilations of the same code.
    limits = torch._dynamo.config
    name = "recompile_limit" if hasattr(limits, "recompile_limit") else "cache_size_limit"
    setattr(limits, name, 64)
    timer = Timer(options.device)
    measure_ceiling(options, timer)
    run_case(options, timer)
    return None


if __name__ == "__main__":
    main()
