#include "onebit/math/device/onednn_stream.h"

namespace onebit {
namespace {

using dnnl::cpu_isa;

constexpr OnednnInstructionSet kNewer[] = {
    {cpu_isa::avx2_vnni_2, "avx2_vnni_2", false, true},
    {cpu_isa::avx512_core_fp16, "avx512_core_fp16", true, true},
    {cpu_isa::avx512_core_amx_fp16, "avx512_core_amx_fp16", true, true, true},
};

}  // namespace

std::span<const OnednnInstructionSet> newer_onednn_instruction_sets() {
  return kNewer;
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
