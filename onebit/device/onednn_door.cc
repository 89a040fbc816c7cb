#include "onebit/device/onednn_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onebit/base/log.h"
#include "onebit/device/libraries.h"

namespace onebit {
namespace {

// oneDNN emulates bf16 products on older AVX-512 processors; only these have the instruction.
bool native_bf16() {
  const auto isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
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
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "unknown";
  }
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::string onednn_instruction_set() {
  return OnednnDoor::instruction_set();
}

}  // namespace onebit
