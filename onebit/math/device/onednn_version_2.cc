#include "onebit/math/device/onednn_stream.h"

namespace onebit {
std::span<const OnednnInstructionSet> newer_onednn_instruction_sets() {
  return {};
}

dnnl::matmul::primitive_desc plan_product(const dnnl::engine& engine,
                                          const dnnl::memory::desc& source,
                                          const dnnl::memory::desc& weights,
                                          const dnnl::memory::desc* bias,
                                          const dnnl::memory::desc& destination,
                                          const dnnl::primitive_attr& attributes) {
  const auto description = bias == nullptr
                               ? dnnl::matmul::desc(source, weights, destination)
                               : dnnl::matmul::desc(source, weights, *bias, destination);
  return {description, attributes, engine};
}

}  // namespace onebit
