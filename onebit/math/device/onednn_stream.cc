#include "onebit/math/device/onednn_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onebit/ground/base/log.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/onednn_version.h"

namespace onebit {
namespace {

using dnnl::cpu_isa;

// The instruction sets that oneDNN 2.6 names; onednn_version.h adds those of later versions.
constexpr OnednnInstructionSet kInstructionSets[] = {
    {cpu_isa::sse41, "sse41"},
    {cpu_isa::avx, "avx"},
    {cpu_isa::avx2, "avx2"},
    {cpu_isa::avx2_vnni, "avx2_vnni"},
    {cpu_isa::avx512_core, "avx512_core"},
    {cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
    {cpu_isa::avx512_core_bf16, "avx512_core_bf16", true},
    {cpu_isa::avx512_core_amx, "avx512_core_amx", true},
};

const OnednnInstructionSet* find_set(std::span<const OnednnInstructionSet> sets, cpu_isa isa) {
  const auto found = std::find_if(
      sets.begin(), sets.end(), [isa](const OnednnInstructionSet& set) { return set.isa == isa; });
  return found == sets.end() ? nullptr : &*found;
}

// The set that oneDNN uses on this processor, or null if it is newer than these lists.
const OnednnInstructionSet* instruction_set_here() {
  const cpu_isa isa = dnnl::get_effective_cpu_isa();
  const OnednnInstructionSet* old = find_set(kInstructionSets, isa);
  return old != nullptr ? old : find_set(newer_onednn_instruction_sets(), isa);
}

bool native_bf16() {
  const OnednnInstructionSet* here = instruction_set_here();
  return here != nullptr && here->multiplies_bf16;
}

}  // namespace

OnednnStream::OnednnStream()
    : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), has_native_bf16_(native_bf16()) {}

PreparedPrimitive* OnednnStream::find_primitive(const PrimitiveKey& key) {
  const auto found = primitives_.find(key);
  if (found == primitives_.end()) return nullptr;
  found->second.last_use = ++uses_;
  return &found->second;
}

PreparedPrimitive& OnednnStream::keep_primitive(const PrimitiveKey& key,
                                                PreparedPrimitive primitive) {
  if (primitives_.size() >= kMaxPrimitives) {
    primitives_.erase(std::min_element(
        primitives_.begin(), primitives_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
  }
  log_debug("oneDNN: created primitive {} of at most {}", primitives_.size() + 1, kMaxPrimitives);
  primitive.last_use = ++uses_;
  return primitives_.insert_or_assign(key, std::move(primitive)).first->second;
}

const char* OnednnStream::instruction_set() {
  const OnednnInstructionSet* here = instruction_set_here();
  return here != nullptr ? here->name : "unknown";
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::string onednn_instruction_set() {
  return OnednnStream::instruction_set();
}

}  // namespace onebit
