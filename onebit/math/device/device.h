#pragma once

#include <string>
#include <string_view>

namespace onebit {

enum class DeviceType { kCpu, kCuda };

// Where memory resides and work runs. `index` numbers this process's CUDA devices, and is 0 on the
// CPU.
struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;

  bool is_cpu() const { return type == DeviceType::kCpu; }
  bool operator==(const Device&) const = default;
};

inline std::string_view name_of(DeviceType type) {
  return type == DeviceType::kCpu ? "cpu" : "cuda";
}

}  // namespace onebit
