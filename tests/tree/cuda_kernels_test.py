"""Compiled kernels stay within limits, so that no change increases registers or loses loads
unnoticed.

    cuda_kernels_test.py FOLDER

The folder contains the objects of a build with the CUDA backend. The limits are for sm_90, measured
on an H100 (docs/cuda.md). A build without that architecture is skipped (status 77).
"""
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import cuda_kernels  # noqa: E402

ARCHITECTURE, SKIPPED = 90, 77


@dataclass
class Limit:
    """The limits of all kernels in `source` whose plain name contains `kernel`."""
    source: str
    kernel: str
    registers: int = 64
    local_bytes: int = 0
    loads: int = 0  # in flight, at least
    instructions: int = 4096


# The first matching limit applies. Kernels with few registers hide the latency of memory by many
# warps, the others by many loads per warp.
LIMITS = [
    # Windows and biases of scores: other instances, so that those for whole sequences stay as they
    # are.
    Limit("attention_cuda.cu", "WarpgroupProducts<64>, ops::cuda::WindowOrBias", registers=128,
          instructions=1700),
    Limit("attention_cuda.cu", "WarpgroupProducts<32>, ops::cuda::WindowOrBias", registers=128,
          instructions=1500),
    Limit("attention_backward_cuda.cu", "WarpgroupProducts<64>, ops::cuda::WindowOrBias",
          registers=128, local_bytes=48, instructions=2200),
    Limit("attention_backward_cuda.cu", "WarpgroupProducts<128>, ops::cuda::WindowOrBias",
          registers=248),
    Limit("attention_backward_cuda.cu", "WarpProducts<128>, ops::cuda::WindowOrBias",
          registers=255, local_bytes=64),
    Limit("attention_backward_cuda.cu", "WarpProducts<64>, ops::cuda::WindowOrBias",
          registers=168, local_bytes=48),
    Limit("attention_plain_cuda.cu", "WindowOrBias", registers=80),
    # Heads of 128 columns: one block of 8 warps, or two of 4, on a multiprocessor.
    Limit("attention_cuda.cu", "Products<128>", registers=232),
    Limit("attention_backward_cuda.cu", "WarpgroupProducts<128>", registers=224),
    Limit("attention_backward_cuda.cu", "tiled_queries<__half, ops::cuda::WarpProducts<128>",
          registers=255),
    Limit("attention_backward_cuda.cu",
          "tiled_queries<__nv_bfloat16, ops::cuda::WarpProducts<128>", registers=255),
    Limit("attention_backward_cuda.cu", "WarpProducts<128>", registers=255, local_bytes=64),
    Limit("attention_cuda.cu", "WarpgroupProducts", registers=128, instructions=1400),
    Limit("attention_cuda.cu", "tiled_forward", registers=128, local_bytes=32),
    Limit("attention_backward_cuda.cu", "WarpgroupProducts<32>", registers=128),
    Limit("attention_backward_cuda.cu", "WarpgroupProducts", registers=128, local_bytes=8,
          instructions=1800),
    Limit("attention_backward_cuda.cu", "tiled_queries", registers=128, local_bytes=32),
    Limit("attention_backward_cuda.cu", "tiled_keys", registers=168, local_bytes=24),
    Limit("sign_codec_cuda.cu", "encode_blocks", registers=128, loads=16, instructions=14000),
    Limit("sign_codec_cuda.cu", "average_blocks", registers=128, local_bytes=32, loads=12,
          instructions=12000),
    Limit("layer_norm_cuda.cu", "residual_forward", registers=40, loads=20),
    # With more than 128 registers fewer blocks fit on a multiprocessor.
    Limit("layer_norm_cuda.cu", "residual_backward<true, 0", registers=128, loads=16,
          instructions=1160),
    Limit("layer_norm_cuda.cu", "residual_backward<true", registers=128, loads=16, instructions=1000),
    Limit("layer_norm_cuda.cu", "residual_backward<false", registers=96, loads=13),
    Limit("layer_norm_cuda.cu", "forward", registers=40, loads=20),
    Limit("layer_norm_cuda.cu", "backward", registers=80, loads=10),
    Limit("embedding_cuda.cu", "forward", registers=40, loads=20),
    Limit("embedding_cuda.cu", "backward", registers=96, loads=10),
    # Exact functions are for f32, 16-bit types use the short GELU.
    Limit("activation_cuda.cu", "backward<true, __half, ops::cuda::Exact>", registers=136,
          instructions=8000),
    Limit("activation_cuda.cu", "backward<true, __nv_bfloat16, ops::cuda::Exact>", registers=136,
          instructions=8000),
    Limit("activation_cuda.cu", "backward<true, float, ops::cuda::Exact>", registers=128,
          instructions=8000),
    Limit("activation_cuda.cu", "ShortGelu", registers=56, loads=6),
    Limit("adam_update_cuda.cu", "cuda::update", registers=64, loads=40),
    Limit("lamb_update_cuda.cu", "update_moments", registers=64, loads=40),
    Limit("lamb_update_cuda.cu", "move_values", registers=48, loads=30),
    Limit("onebit_adam_update_cuda.cu", "normalize", registers=64, loads=20),
    Limit("onebit_adam_update_cuda.cu", "momentum", registers=32, loads=20),
    Limit("onebit_adam_update_cuda.cu", "step", registers=32, loads=10),
    Limit("embedding_cuda.cu", "scatter<true>", registers=48, loads=6),
    Limit("losses_cuda.cu", "rows", registers=40, loads=5),
    Limit("", ""),
]


def breaches(kernel, limits=None):
    """Returns one line per limit that `kernel` exceeds."""
    limit = next(one for one in limits or LIMITS
                 if one.source in kernel.source and one.kernel in kernel.plain_name)
    checks = [("registers", kernel.registers, "at most", limit.registers),
              ("bytes of local memory", kernel.local_bytes, "at most", limit.local_bytes),
              ("instructions", kernel.instructions, "at most", limit.instructions),
              ("loads in flight", kernel.loads_in_flight, "at least", limit.loads)]
    return [f"{kernel.source}, {kernel.plain_name}: {value} {what}, {rule} {bound}"
            for what, value, rule, bound in checks
            if (value > bound if rule == "at most" else value < bound)]


def check_the_check():
    """Checks that exceeding each of the four limits is reported."""
    limits = [Limit("a.cu", "f", registers=10, local_bytes=0, loads=4, instructions=100)]
    sound = {"registers": 10, "local_bytes": 0, "loads_in_flight": 4, "instructions": 100}
    for name in sound:
        worse = sound | {name: sound[name] + (-1 if name == "loads_in_flight" else 1)}
        kernel = cuda_kernels.Kernel("f", "a.cu", 90, plain_name="f", **worse)
        assert len(breaches(kernel, limits)) == 1, name
    assert not breaches(cuda_kernels.Kernel("f", "a.cu", 90, plain_name="f", **sound), limits)


def main(folder):
    check_the_check()
    kernels = [one for one in cuda_kernels.read_kernels([folder])
               if one.architecture == ARCHITECTURE]
    if not kernels:
        print(f"no machine code for sm_{ARCHITECTURE} below {folder}")
        return SKIPPED
    problems = [line for one in kernels for line in breaches(one)]
    for limit in LIMITS:
        if not any(limit.source in one.source and limit.kernel in one.plain_name
                   for one in kernels):
            problems.append(f"no kernel is {limit.source}, {limit.kernel}: mend LIMITS")
    print("\n".join(problems + [f"{len(kernels)} kernels, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
