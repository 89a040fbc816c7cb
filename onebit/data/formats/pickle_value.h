// The content of a pickle as data: nothing in it was or will be called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/dtype.h"

namespace onebit::formats {

using PickleIndex = uint32_t;  // into Pickle::values: values may be shared and form cycles

enum class PickleKind : uint8_t {
  kNone,
  kBoolean,
  kInteger,
  kText,
  kTuple,   // items
  kList,    // items
  kDict,    // items: key, value, key, value...
  kGlobal,  // a known class or function, by name (integer is its GlobalRole)
  kStorage,
  kTensor,
  kOther,  // a known harmless kind that no tensor needs: a float, a set, an object
};

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  int64_t integer = 0;    // kBoolean, kInteger, or the index into Pickle of kStorage, kTensor
  std::string_view text;  // kText, kGlobal ("module.name"): points into the pickle
  std::vector<PickleIndex> items;
};

// The element type of a torch storage class.
struct TorchDType {
  DType dtype = DType::kF32;  // if `name` is not read, a type of the same size
  bool is_read = true;
  std::string_view name;
};

struct TorchStorage {
  std::string_view key;
  TorchDType type;
  int64_t elements = 0;
};

struct TorchTensor {
  size_t storage = 0;
  int64_t offset_elements = 0;  // into the storage
  std::vector<int64_t> extents, strides;
};

struct Pickle {
  std::vector<PickleValue> values;
  PickleIndex root = 0;
  std::vector<TorchStorage> storages;
  std::vector<TorchTensor> tensors;
  size_t size_bytes = 0;  // up to and with the stop mark

  const PickleValue& root_value() const { return values[root]; }
  // The value of a text key of a dict, or null if there is none.
  const PickleValue* find(const PickleValue& dict, std::string_view key) const;
};

}  // namespace onebit::formats
