// The classes and functions that a pickle may name. All others are refused by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "onebit/data/formats/pickle_value.h"

namespace onebit::formats {

enum class GlobalRole : uint8_t {
  kDict,              // collections.OrderedDict and its like
  kSize,              // torch.Size: its argument, a tuple
  kRebuildTensor,     // torch._utils._rebuild_tensor, _rebuild_tensor_v2
  kRebuildParameter,  // torch._utils._rebuild_parameter: its first argument
  kRebuildFromType,   // torch._tensor._rebuild_from_type_v2: calls its first argument
  kStorageClass,      // torch.FloatStorage...
  kOther,             // plain data that no tensor needs: argparse.Namespace, a numpy scalar...
};

// Empty if the name is unknown and must be refused.
std::optional<GlobalRole> global_role(std::string_view module, std::string_view name);

// The element type of "FloatStorage" and its like.
std::optional<TorchDType> storage_dtype(std::string_view class_name);

}  // namespace onebit::formats
