// The interfaces that differ between oneDNN 2 (2.6 and later) and oneDNN 3. CMake picks
// onednn_version_2.cc or onednn_version_3.cc according to the version it finds.
#pragma once

#include <dnnl.hpp>
#include <span>

namespace onebit {

struct OnednnInstructionSet {
  dnnl::cpu_isa isa;
  const char* name;
  // oneDNN multiplies bf16 on AVX-512 and later, but emulated: only some sets have the instruction.
  bool multiplies_bf16 = false;
  bool multiplies_int8 = false;  // u8 * s8 with sums of 32 bits, which VNNI and AMX have
};

// The instruction sets that this version names and oneDNN 2.6 does not.
std::span<const OnednnInstructionSet> newer_onednn_instruction_sets();

// destination = source * weights + bias for row-major matrices, with the post-operations of
// `attributes`. `bias` is null or [1, n] f32. Throws dnnl::error if oneDNN has no such product.
dnnl::matmul::primitive_desc plan_product(const dnnl::engine& engine,
                                          const dnnl::memory::desc& source,
                                          const dnnl::memory::desc& weights,
                                          const dnnl::memory::desc* bias,
                                          const dnnl::memory::desc& destination,
                                          const dnnl::primitive_attr& attributes);

}  // namespace onebit
