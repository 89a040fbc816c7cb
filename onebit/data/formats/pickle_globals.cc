#include "onebit/data/formats/pickle_globals.h"

#include <algorithm>

namespace onebit::formats {
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

}  // namespace onebit::formats
