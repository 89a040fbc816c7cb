#include "onebit/data/formats/pickle_objects.h"

#include <algorithm>
#include <utility>

#include "onebit/ground/base/printable.h"

namespace onebit::formats {

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != PickleKind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& candidate = values[dict.items[i]];
    if (candidate.kind == PickleKind::kText && candidate.text == key) {
      return &values[dict.items[i + 1]];
    }
  }
  return nullptr;
}

namespace {

struct KnownGlobal {
  std::string_view module, name;
  GlobalRole role;
};

constexpr KnownGlobal kKnown[] = {
    {"collections", "OrderedDict", GlobalRole::kDict},
    {"collections", "defaultdict", GlobalRole::kOther},
    {"collections", "Counter", GlobalRole::kOther},
    {"torch", "Size", GlobalRole::kSize},
    {"torch._utils", "_rebuild_tensor", GlobalRole::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", GlobalRole::kRebuildTensor},
    {"torch._utils", "_rebuild_parameter", GlobalRole::kRebuildParameter},
    {"torch._utils", "_rebuild_parameter_with_state", GlobalRole::kRebuildParameter},
    {"torch._tensor", "_rebuild_from_type_v2", GlobalRole::kRebuildFromType},
    {"torch", "Tensor", GlobalRole::kOther},
    {"torch.nn.parameter", "Parameter", GlobalRole::kOther},
    {"torch", "device", GlobalRole::kOther},
    {"argparse", "Namespace", GlobalRole::kOther},
    {"_codecs", "encode", GlobalRole::kOther},
    {"copyreg", "_reconstructor", GlobalRole::kOther},
    {"copy_reg", "_reconstructor", GlobalRole::kOther},
    {"numpy", "dtype", GlobalRole::kOther},
    {"numpy", "ndarray", GlobalRole::kOther},
    {"numpy.core.multiarray", "scalar", GlobalRole::kOther},
    {"numpy.core.multiarray", "_reconstruct", GlobalRole::kOther},
    {"numpy._core.multiarray", "scalar", GlobalRole::kOther},
    {"numpy._core.multiarray", "_reconstruct", GlobalRole::kOther},
    {"deepspeed.runtime.fp16.loss_scaler", "LossScaler", GlobalRole::kOther},
    {"deepspeed.runtime.fp16.loss_scaler", "DynamicLossScaler", GlobalRole::kOther},
    {"deepspeed.runtime.zero.config", "ZeroStageEnum", GlobalRole::kOther},
    {"deepspeed.utils.tensor_fragment", "fragment_address", GlobalRole::kOther},
};

// Classes of builtins (Python 3) and __builtin__ (Python 2) that are plain data.
constexpr std::string_view kPlainBuiltins[] = {
    "bool", "bytearray", "bytes",  "complex", "dict",  "float", "frozenset", "int",
    "list", "long",      "object", "set",     "slice", "str",   "tuple",     "unicode"};

constexpr std::string_view kTorchDTypes[] = {
    "float32", "float64", "float16", "bfloat16", "float", "double", "half", "int8",
    "int16",   "int32",   "int64",   "uint8",    "bool",  "int",    "long", "short"};

struct StorageClass {
  std::string_view name;
  TorchDType type;
};

constexpr StorageClass kStorageClasses[] = {
    {"FloatStorage", {DType::kF32, true, "float32"}},
    {"HalfStorage", {DType::kF16, true, "float16"}},
    {"BFloat16Storage", {DType::kBF16, true, "bfloat16"}},
    {"DoubleStorage", {DType::kF64, true, "float64"}},
    {"LongStorage", {DType::kI64, true, "int64"}},
    {"IntStorage", {DType::kI32, true, "int32"}},
    {"ByteStorage", {DType::kU8, true, "uint8"}},
    {"CharStorage", {DType::kU8, false, "int8"}},
    {"BoolStorage", {DType::kU8, false, "bool"}},
    {"ShortStorage", {DType::kU16, false, "int16"}},
    {"ComplexFloatStorage", {DType::kU64, false, "complex64"}},
};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

std::optional<TorchDType> storage_dtype(std::string_view class_name) {
  for (const StorageClass& known : kStorageClasses) {
    if (known.name == class_name) return known.type;
  }
  return std::nullopt;
}

std::optional<GlobalRole> global_role(std::string_view module, std::string_view name) {
  for (const KnownGlobal& known : kKnown) {
    if (known.module == module && known.name == name) return known.role;
  }
  if (module == "torch" || module == "torch.cuda") {
    if (storage_dtype(name)) return GlobalRole::kStorageClass;
    if (contains(kTorchDTypes, name)) return GlobalRole::kOther;
  }
  if ((module == "builtins" || module == "__builtin__") && contains(kPlainBuiltins, name)) {
    return GlobalRole::kOther;
  }
  return std::nullopt;
}

namespace {

constexpr size_t kMaxAxes = 16;

}  // namespace

PickleIndex PickleObjects::add(PickleValue value) {
  if (pickle_.values.size() >= kMaxPickleValues) {
    reader_.refuse(fmt::format("a pickle of more than {} values", kMaxPickleValues));
  }
  pickle_.values.push_back(std::move(value));
  return static_cast<PickleIndex>(pickle_.values.size() - 1);
}

void PickleObjects::extend(PickleIndex container, const std::vector<PickleIndex>& items) {
  PickleValue& target = pickle_.values[container];
  if (target.kind == PickleKind::kOther) return;
  const bool is_dict = target.kind == PickleKind::kDict;
  if ((!is_dict && target.kind != PickleKind::kList) || (is_dict && items.size() % 2 != 0)) {
    reader_.refuse("a damaged pickle: items for something that is not a container");
  }
  target.items.insert(target.items.end(), items.begin(), items.end());
}

Pickle PickleObjects::finish(PickleIndex root, size_t size_bytes) {
  pickle_.root = root;
  pickle_.size_bytes = size_bytes;
  return std::move(pickle_);
}

void PickleObjects::spend(size_t numbers) {
  spent_ += numbers;
  if (spent_ > kMaxPickleBytes / 4) {
    reader_.refuse("a pickle that builds far more than it contains; it is hostile");
  }
}

const PickleValue& PickleObjects::item(const PickleValue& tuple, size_t index,
                                       const char* what) const {
  if (tuple.kind != PickleKind::kTuple || index >= tuple.items.size()) {
    reader_.refuse(fmt::format("a damaged pickle: {} is missing", what));
  }
  return pickle_.values[tuple.items[index]];
}

int64_t PickleObjects::integer(const PickleValue& value, const char* what) const {
  if (value.kind != PickleKind::kInteger || value.integer < 0) {
    reader_.refuse(fmt::format("a damaged pickle: {} is not a whole number from 0", what));
  }
  return value.integer;
}

std::vector<int64_t> PickleObjects::integers(const PickleValue& value, const char* what) const {
  if (value.kind != PickleKind::kTuple || value.items.size() > kMaxAxes) {
    reader_.refuse(fmt::format("a damaged pickle: {} is not a list of numbers", what));
  }
  std::vector<int64_t> numbers;
  for (const PickleIndex index : value.items) {
    numbers.push_back(integer(pickle_.values[index], what));
  }
  return numbers;
}

PickleIndex PickleObjects::reduce(PickleIndex function, PickleIndex arguments) {
  // References stay valid until a value is added, which every case does at its end.
  const PickleValue &callee = pickle_.values[function], &tuple = pickle_.values[arguments];
  if (callee.kind != PickleKind::kGlobal || tuple.kind != PickleKind::kTuple) {
    reader_.refuse("a damaged pickle: a call of something that is not a function");
  }
  switch (static_cast<GlobalRole>(callee.integer)) {
    case GlobalRole::kDict:
      return new_dict(tuple);
    case GlobalRole::kRebuildTensor:
      return new_tensor(tuple);
    case GlobalRole::kSize:
    case GlobalRole::kRebuildParameter:
      item(tuple, 0, "an argument");
      return tuple.items[0];
    case GlobalRole::kRebuildFromType: {  // (function, type, arguments, state)
      const PickleValue& inner = item(tuple, 0, "a function");
      item(tuple, 2, "an argument");
      // Only a direct call is allowed: a chain of these would recurse to any depth.
      if (inner.kind != PickleKind::kGlobal ||
          static_cast<GlobalRole>(inner.integer) == GlobalRole::kRebuildFromType) {
        reader_.refuse("a tensor rebuilt by something that is not a function");
      }
      return reduce(tuple.items[0], tuple.items[2]);
    }
    case GlobalRole::kStorageClass:
      reader_.refuse(fmt::format("a storage {} made by a call", quote(callee.text)));
    case GlobalRole::kOther:
      break;
  }
  return add({PickleKind::kOther, 0, {}, {}});
}

// OrderedDict() or, from Python 2, OrderedDict([[key, value], ...]).
PickleIndex PickleObjects::new_dict(const PickleValue& arguments) {
  PickleValue dict{PickleKind::kDict, 0, {}, {}};
  if (!arguments.items.empty()) {
    const PickleValue& pairs = pickle_.values[arguments.items[0]];
    const bool is_list = pairs.kind == PickleKind::kList || pairs.kind == PickleKind::kTuple;
    if (!is_list) reader_.refuse("a damaged pickle: a dict not made of a list");
    spend(2 * pairs.items.size());
    for (const PickleIndex index : pairs.items) {
      const PickleValue& pair = pickle_.values[index];
      const bool holds_two = pair.kind == PickleKind::kList || pair.kind == PickleKind::kTuple;
      if (!holds_two || pair.items.size() != 2) {
        reader_.refuse("a damaged pickle: a dict's entry that is not a pair");
      }
      dict.items.insert(dict.items.end(), pair.items.begin(), pair.items.end());
    }
  }
  return add(std::move(dict));
}

// (storage, offset, size, stride, ...)
PickleIndex PickleObjects::new_tensor(const PickleValue& arguments) {
  const PickleValue& storage = item(arguments, 0, "a tensor's storage");
  if (storage.kind != PickleKind::kStorage) {
    reader_.refuse("a damaged pickle: a tensor without a storage");
  }
  TorchTensor tensor;
  tensor.storage = static_cast<size_t>(storage.integer);
  // A storage that is a part of another (files of 2018) has an offset of its own.
  const int64_t base = storage.items.empty() ? 0 : pickle_.values[storage.items[0]].integer;
  const int64_t offset = integer(item(arguments, 1, "a tensor's offset"), "a tensor's offset");
  const int64_t elements = pickle_.storages[tensor.storage].elements;
  if (base > elements || offset > elements - base) {
    reader_.refuse("a tensor that begins beyond its storage");
  }
  tensor.offset_elements = base + offset;
  tensor.extents = integers(item(arguments, 2, "a tensor's size"), "a tensor's size");
  tensor.strides = integers(item(arguments, 3, "a tensor's stride"), "a tensor's stride");
  if (tensor.extents.size() != tensor.strides.size()) {
    reader_.refuse("a damaged pickle: a tensor's size and stride differ in length");
  }
  spend(2 * tensor.extents.size() + sizeof(TorchTensor) / sizeof(int64_t));
  pickle_.tensors.push_back(std::move(tensor));
  return add({PickleKind::kTensor, static_cast<int64_t>(pickle_.tensors.size() - 1), {}, {}});
}

// ("storage", class, key, location, elements[, view]), where view is (key, offset, elements) or
// None.
PickleIndex PickleObjects::new_storage(PickleIndex identity) {
  const PickleValue& tuple = pickle_.values[identity];
  const PickleValue& kind = item(tuple, 0, "a storage's kind");
  if (kind.kind != PickleKind::kText || kind.text != "storage") {
    reader_.refuse(kind.text == "module"
                       ? "the file contains a whole module (a class), not its tensors; save "
                         "model.state_dict() instead"
                       : "a damaged pickle: a storage of an unknown kind");
  }
  const PickleValue& type = item(tuple, 1, "a storage's class");
  const PickleValue& key = item(tuple, 2, "a storage's key");
  const bool known = type.kind == PickleKind::kGlobal &&
                     static_cast<GlobalRole>(type.integer) == GlobalRole::kStorageClass;
  if (!known || key.kind != PickleKind::kText)
    reader_.refuse("a damaged pickle: a storage's class");
  TorchStorage storage{key.text, *storage_dtype(type.text),
                       integer(item(tuple, 4, "a storage's size"), "a storage's size")};
  PickleValue value{PickleKind::kStorage, 0, {}, {}};
  if (tuple.items.size() > 5) {
    const PickleValue& view = pickle_.values[tuple.items[5]];
    if (view.kind != PickleKind::kNone) {
      integer(item(view, 1, "a view's offset"), "a view's offset");
      value.items.push_back(view.items[1]);
    }
  }
  const auto [found, is_new] = storages_by_key_.emplace(storage.key, pickle_.storages.size());
  value.integer = static_cast<int64_t>(found->second);
  if (is_new) {
    pickle_.storages.push_back(storage);
  } else {
    const TorchStorage& known_one = pickle_.storages[found->second];
    if (known_one.elements != storage.elements || known_one.type.name != storage.type.name) {
      reader_.refuse(fmt::format("storage {} is duplicated, with different sizes or types",
                                 quote(storage.key)));
    }
  }
  return add(std::move(value));
}

}  // namespace onebit::formats
