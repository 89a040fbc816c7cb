// What the interfaces of oneDNN 2 (2.6 and later) and of oneDNN 3 have each of their own. CMake
// picks onednn_version_2.cc or onednn_version_3.cc by what it finds.
#pragma once

#include <dnnl.hpp>
#include <span>

namespace onebit {

struct OnednnInstructionSet {
  dnnl::cpu_isa isa;
  const char* name;
  // oneDNN multiplies bf16 from AVX-512 on, but emulated: only these have the instruction.
  bool multiplies_bf16 = false;
};

// Those that this version names and oneDNN 2.6 does not.
std::span<const OnednnInstructionSet> newer_onednn_instruction_sets();

// Row-major matrices, `bias` null or [1, n] f32: destination = source * weights + bias, with the
// post-operations of `attributes`. Throws dnnl::error where oneDNN has no such product.
dnnl::matmul::primitive_desc plan_product(const dnnl::engine& engine,
                                          const dnnl::memory::desc& source,
                                          const dnnl::memory::desc& weights,
                                          const dnnl::memory::desc* bias,
                                          const dnnl::memory::desc& destination,
                                          const dnnl::primitive_attr& attributes);

}  // namespace onebit
