#include "onebit/device/onednn_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "onebit/base/log.h"
#include "onebit/device/libraries.h"

namespace onebit {
namespace {

using dnnl::cpu_isa;

struct InstructionSet {
  cpu_isa isa;
  const char* name;
  // oneDNN multiplies bf16 from AVX-512 on, but emulated: only these have the instruction.
  bool multiplies_bf16 = false;
};

constexpr InstructionSet kInstructionSets[] = {
    {cpu_isa::sse41, "sse41"},
    {cpu_isa::avx, "avx"},
    {cpu_isa::avx2, "avx2"},
    {cpu_isa::avx2_vnni, "avx2_vnni"},
    {cpu_isa::avx512_core, "avx512_core"},
    {cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
    {cpu_isa::avx512_core_bf16, "avx512_core_bf16", true},
    {cpu_isa::avx512_core_amx, "avx512_core_amx", true},
#if DNNL_VERSION_MAJOR >= 3
    {cpu_isa::avx2_vnni_2, "avx2_vnni_2"},
    {cpu_isa::avx512_core_fp16, "avx512_core_fp16", true},
    {cpu_isa::avx512_core_amx_fp16, "avx512_core_amx_fp16", true},
#endif
};

// Of this processor, or null where oneDNN names a set that is newer than this list.
const InstructionSet* instruction_set_here() {
  const cpu_isa isa = dnnl::get_effective_cpu_isa();
  const auto found = std::find_if(std::begin(kInstructionSets), std::end(kInstructionSets),
                                  [&](const InstructionSet& set) { return set.isa == isa; });
  return found == std::end(kInstructionSets) ? nullptr : found;
}

bool native_bf16() {
  const InstructionSet* here = instruction_set_here();
  return here != nullptr && here->multiplies_bf16;
}

}  // namespace

dnnl::matmul::primitive_desc plan_product(const dnnl::engine& engine,
                                          const dnnl::memory::desc& source,
                                          const dnnl::memory::desc& weights,
                                          const dnnl::memory::desc* bias,
                                          const dnnl::memory::desc& destination,
                                          const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  if (bias == nullptr) return {engine, source, weights, destination, attributes};
  return {engine, source, weights, *bias, destination, attributes};
#else
  const auto description = bias == nullptr
                               ? dnnl::matmul::desc(source, weights, destination)
                               : dnnl::matmul::desc(source, weights, *bias, destination);
  return {description, attributes, engine};
#endif
}

OnednnDoor::OnednnDoor()
    : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), has_native_bf16_(native_bf16()) {}

PreparedPrimitive* OnednnDoor::find_primitive(const PrimitiveKey& key) {
  const auto found = primitives_.find(key);
  if (found == primitives_.end()) return nullptr;
  found->second.last_use = ++uses_;
  return &found->second;
}

PreparedPrimitive& OnednnDoor::keep_primitive(const PrimitiveKey& key,
                                              PreparedPrimitive primitive) {
  if (primitives_.size() >= kMaxPrimitives) {
    primitives_.erase(std::min_element(
        primitives_.begin(), primitives_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
  }
  log_debug("oneDNN: primitive {} of at most {} made", primitives_.size() + 1, kMaxPrimitives);
  primitive.last_use = ++uses_;
  return primitives_.insert_or_assign(key, std::move(primitive)).first->second;
}

const char* OnednnDoor::instruction_set() {
  const InstructionSet* here = instruction_set_here();
  return here != nullptr ? here->name : "unknown";
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::string onednn_instruction_set() {
  return OnednnDoor::instruction_set();
}

}  // namespace onebit
