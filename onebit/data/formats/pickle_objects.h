// The values of a pickle while it is read, and the results of the few functions that it may name:
// dicts, storages, tensors. Nothing is called, and memory is bounded for any pickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/ground/base/byte_reader.h"
#include "onebit/ground/base/dtype.h"

namespace onebit::formats {

// The content of a pickle as data: nothing in it was or will be called.
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

// The classes and functions that a pickle may name. All others are refused by name.
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

inline constexpr size_t kMaxPickleBytes = size_t{64} << 20;
inline constexpr size_t kMaxPickleValues = size_t{4} << 20;

class PickleObjects {
 public:
  // Errors state the path of `reader`, which must outlive this, and its current offset.
  explicit PickleObjects(const ByteReader& reader) : reader_(reader) {}
  PickleObjects(const PickleObjects&) = delete;
  PickleObjects& operator=(const PickleObjects&) = delete;

  const PickleValue& operator[](PickleIndex index) const { return pickle_.values[index]; }
  PickleIndex add(PickleValue value);
  // Adds items to a list or a dict. A kOther value drops them.
  void extend(PickleIndex container, const std::vector<PickleIndex>& items);
  // The result of `function` with `arguments`, for the functions that a pickle may name.
  PickleIndex reduce(PickleIndex function, PickleIndex arguments);
  // The storage of a persistent id.
  PickleIndex new_storage(PickleIndex identity);

  Pickle finish(PickleIndex root, size_t size_bytes);

 private:
  PickleIndex new_dict(const PickleValue& arguments);
  PickleIndex new_tensor(const PickleValue& arguments);
  // Counts values built from shared ones: a few bytes may request this again and again.
  void spend(size_t numbers);
  const PickleValue& item(const PickleValue& tuple, size_t index, const char* what) const;
  int64_t integer(const PickleValue& value, const char* what) const;
  std::vector<int64_t> integers(const PickleValue& value, const char* what) const;

  const ByteReader& reader_;
  Pickle pickle_;
  size_t spent_ = 0;
  std::unordered_map<std::string_view, size_t> storages_by_key_;
};

}  // namespace onebit::formats
