#include "onebit/device/onednn_version.h"

namespace onebit {
namespace {

using dnnl::cpu_isa;

constexpr OnednnInstructionSet kInstructionSets[] = {
    {cpu_isa::sse41, "sse41"},
    {cpu_isa::avx, "avx"},
    {cpu_isa::avx2, "avx2"},
    {cpu_isa::avx2_vnni, "avx2_vnni"},
    {cpu_isa::avx512_core, "avx512_core"},
    {cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
    {cpu_isa::avx512_core_bf16, "avx512_core_bf16", true},
    {cpu_isa::avx512_core_amx, "avx512_core_amx", true},
    {cpu_isa::avx2_vnni_2, "avx2_vnni_2"},
    {cpu_isa::avx512_core_fp16, "avx512_core_fp16", true},
    {cpu_isa::avx512_core_amx_fp16, "avx512_core_amx_fp16", true},
};

}  // namespace

std::span<const OnednnInstructionSet> onednn_instruction_sets() {
  return kInstructionSets;
}

dnnl::matmul::primitive_desc plan_product(const dnnl::engine& engine,
                                          const dnnl::memory::desc& source,
                                          const dnnl::memory::desc& weights,
                                          const dnnl::memory::desc* bias,
                                          const dnnl::memory::desc& destination,
                                          const dnnl::primitive_attr& attributes) {
  if (bias == nullptr) return {engine, source, weights, destination, attributes};
  return {engine, source, weights, *bias, destination, attributes};
}

}  // namespace onebit
