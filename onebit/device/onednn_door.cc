#include "onebit/device/onednn_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onebit/base/log.h"
#include "onebit/device/libraries.h"
#include "onebit/device/onednn_version.h"

namespace onebit {
namespace {

// Of this processor, or null where oneDNN names a set that is newer than this list.
const OnednnInstructionSet* instruction_set_here() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  const std::span<const OnednnInstructionSet> known = onednn_instruction_sets();
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const OnednnInstructionSet& set) { return set.isa == isa; });
  return found == known.end() ? nullptr : &*found;
}

bool native_bf16() {
  const OnednnInstructionSet* here = instruction_set_here();
  return here != nullptr && here->multiplies_bf16;
}

}  // namespace

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
  const OnednnInstructionSet* here = instruction_set_here();
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
