#include "onebit/math/tensor/parameter_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "onebit/ground/base/philox.h"
#include "onebit/ground/base/wording.h"
#include "onebit/math/device/memory.h"

namespace onebit {

void StaleGradients::cover(int parameter, Range range) {
  const auto is_before = [](const Covered& a, const Covered& b) {
    return a.range.begin < b.range.begin;
  };
  for (const Covered& covered : covered_) {
    if (covered.parameter == parameter) return;
  }
  const Covered added{parameter, range, false};
  covered_.insert(std::upper_bound(covered_.begin(), covered_.end(), added, is_before), added);
}

std::vector<Range> StaleGradients::begin_update(int64_t size_elements) {
  if (is_left_to_caller_) return {};
  std::vector<Range> others;
  int64_t end = 0;
  const auto add_until = [&](int64_t begin) {
    if (begin > end) others.push_back({end, begin});
  };
  for (Covered& covered : covered_) {
    covered.is_stale = true;
    add_until(covered.range.begin);
    end = covered.range.end;
  }
  add_until(size_elements);
  return others;
}

bool StaleGradients::take(int parameter) {
  for (Covered& covered : covered_) {
    if (covered.parameter == parameter) return std::exchange(covered.is_stale, false);
  }
  return false;
}

std::vector<Range> StaleGradients::take(Range within) {
  std::vector<Range> stale;
  for (Covered& covered : covered_) {
    const bool is_within = covered.range.begin >= within.begin && covered.range.begin < within.end;
    if (is_within && std::exchange(covered.is_stale, false)) stale.push_back(covered.range);
  }
  return stale;
}

namespace {

Shape with_rows(const Shape& shape, int64_t rows) {
  Shape result{rows};
  for (int axis = 1; axis < shape.rank(); ++axis) result.append(shape[axis]);
  return result;
}

int64_t aligned(int64_t elements) {
  constexpr int64_t kAlignment = ParameterTable::kAlignmentElements;
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t row_elements(const Shape& shape) {
  return shape.rank() == 1 ? 1 : shape.elements() / std::max<int64_t>(shape[0], 1);
}

}  // namespace

int ParameterTable::add(ParameterDeclaration declaration) {
  ONEBIT_INVARIANT(values_.empty());
  const Shape& shape = declaration.shape;
  ONEBIT_INVARIANT(shape.rank() >= 1 && shape.elements() > 0);
  const int64_t storage_rows = std::max(declaration.storage_rows, shape[0]);
  const int index = static_cast<int>(parameters_.size());

  const int64_t begin = size_elements_;
  const int64_t count = storage_rows * row_elements(shape);
  const std::vector<std::string> names =
      declaration.parts.empty() ? std::vector<std::string>{declaration.name} : declaration.parts;
  const int64_t part_rows = shape[0] / static_cast<int64_t>(names.size());
  ONEBIT_INVARIANT(part_rows * static_cast<int64_t>(names.size()) == shape[0]);
  for (size_t part = 0; part < names.size(); ++part) {
    require(names_.insert(names[part]).second, "the parameter {} is declared twice", names[part]);
    entries_.push_back(
        {.name = names[part],
         .shape = with_rows(shape, part_rows),
         .offset_elements = begin + static_cast<int64_t>(part) * part_rows * row_elements(shape),
         .decay = declaration.decay,
         .group = declaration.group,
         .lookup = declaration.lookup,
         .parameter = index});
  }
  size_elements_ = aligned(begin + count);
  const Shape storage_shape = with_rows(shape, storage_rows);
  parameters_.push_back({std::move(declaration), {begin, begin + count}, storage_shape});
  return index;
}

void ParameterTable::allocate(Device device, DType compute, TableUse use) {
  device_ = device;
  compute_type_ = compute;
  placed_.clear();
  const auto reserved = [&](DType type) {
    if (use == TableUse::kTraining) return Tensor::zeros(device, type, {size_elements_});
    Tensor tensor(device, type, {size_elements_});
    if (device.is_cpu() && !tensor.empty()) {
      memory::prepare(static_cast<std::byte*>(tensor.view().raw()), tensor.view().size_bytes(),
                      memory::Use::kPlaces);
    }
    return tensor;
  };
  values_ = reserved(DType::kF32);
  if (use == TableUse::kTraining) gradients_ = reserved(DType::kF32);
  if (compute != DType::kF32) compute_values_ = reserved(compute);
}

void ParameterTable::place(int parameter, ConstView values, std::shared_ptr<const void> owner) {
  ONEBIT_INVARIANT(compute_type_ == DType::kF32 && gradients_.empty());
  ONEBIT_INVARIANT(values.dtype() == DType::kF32 && values.device() == device_);
  ONEBIT_INVARIANT(values.shape() == parameters_[parameter].declaration.shape);
  // Only readers of one parameter get them, and they take views that could write as well.
  const View readable(const_cast<void*>(values.raw()), values.dtype(), values.shape(), device_);
  placed_.insert_or_assign(parameter, Placed{readable, std::move(owner)});
}

int64_t ParameterTable::parameter_count() const {
  int64_t count = 0;
  for (const auto& entry : entries_) count += entry.shape.elements();
  return count;
}

View ParameterTable::compute_values() const {
  return compute_type_ == DType::kF32 ? values_.view() : compute_values_.view();
}

View ParameterTable::compute_copy(Range range) const {
  return compute_type_ == DType::kF32 ? View()
                                      : compute_values_.view().rows(range.begin, range.end);
}

View ParameterTable::slice(const Tensor& flat, int parameter) const {
  const Parameter& placed = parameters_[parameter];
  return flat.view().rows(placed.range.begin, placed.range.end).reshaped(placed.storage_shape);
}

View ParameterTable::value(int parameter) const {
  if (const auto found = placed_.find(parameter); found != placed_.end()) {
    return found->second.values;
  }
  return slice(values_, parameter);
}

View ParameterTable::compute_value(int parameter) const {
  return compute_type_ == DType::kF32 ? value(parameter) : slice(compute_values_, parameter);
}

View ParameterTable::gradient(int parameter) const {
  return slice(gradients_, parameter);
}

void ParameterTable::overwrite_gradient(int parameter) {
  Range range = parameters_[parameter].range;
  range.end = aligned(range.end);
  stale_gradients_.cover(parameter, range);
}

const ParameterEntry& ParameterTable::entry(std::string_view name) const {
  for (const auto& entry : entries_) {
    if (entry.name == name) return entry;
  }
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.name);
  const std::string near = nearest_word(name, names);
  fail("no parameter is named {}{}", name,
       near.empty() ? "" : fmt::format("; the nearest is {}", near));
}

View ParameterTable::value_of(const ParameterEntry& entry) const {
  const int64_t begin = entry.offset_elements;
  return values_.view().rows(begin, begin + entry.shape.elements()).reshaped(entry.shape);
}

View ParameterTable::gradient_of(const ParameterEntry& entry) const {
  const int64_t begin = entry.offset_elements;
  return gradients_.view().rows(begin, begin + entry.shape.elements()).reshaped(entry.shape);
}

std::optional<std::string> ParameterTable::name_at(int64_t element) const {
  for (const auto& entry : entries_) {
    if (element >= entry.offset_elements &&
        element < entry.offset_elements + entry.shape.elements()) {
      return entry.name;
    }
  }
  return std::nullopt;
}

std::vector<ParameterTable::DecayRange> ParameterTable::decay_ranges() const {
  std::vector<DecayRange> ranges;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const int64_t begin = parameters_[index].range.begin;
    const int64_t end =
        index + 1 < parameters_.size() ? parameters_[index + 1].range.begin : size_elements_;
    const ParameterDeclaration& declaration = parameters_[index].declaration;
    const bool decay = declaration.decay;
    const int group = declaration.group;
    if (!ranges.empty() && ranges.back().decay == decay && ranges.back().group == group) {
      ranges.back().range.end = end;
    } else {
      ranges.push_back({{begin, end}, decay, group});
    }
  }
  return ranges;
}

int ParameterTable::group_count() const {
  int count = 1;
  for (const auto& parameter : parameters_) {
    count = std::max(count, parameter.declaration.group + 1);
  }
  return count;
}

namespace {

// FNV-1a of the name: a tensor's values depend on its name, so adding a layer leaves the others'
// values unchanged.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3ull;
  }
  return hash;
}

double unit_interval(uint32_t bits) {
  return (static_cast<double>(bits) + 0.5) * 0x1.0p-32;
}

// Box-Muller on the counter-based generator: four normal deviates per Philox block.
void fill_normal(float* to, int64_t count, double stddev, PhiloxKey key) {
  for (int64_t begin = 0; begin < count; begin += 4) {
    const uint64_t block = static_cast<uint64_t>(begin / 4);
    const PhiloxCounter bits =
        philox({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}}, key);
    for (int64_t pair = 0; pair < 2; ++pair) {
      const double radius = stddev * std::sqrt(-2.0 * std::log(unit_interval(bits.word[2 * pair])));
      const double angle = 2.0 * std::numbers::pi * unit_interval(bits.word[2 * pair + 1]);
      const int64_t at = begin + 2 * pair;
      if (at < count) to[at] = static_cast<float>(radius * std::cos(angle));
      if (at + 1 < count) to[at + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

}  // namespace

void ParameterTable::initialize(uint64_t seed) {
  Tensor staged = Tensor::zeros(Device{}, DType::kF32, {size_elements_});
  for (const auto& entry : entries_) {
    const ParameterDeclaration& declaration = parameters_[entry.parameter].declaration;
    float* to = staged.data<float>() + entry.offset_elements;
    const int64_t count = entry.shape.elements();
    if (declaration.init == InitialValue::kOnes) std::fill(to, to + count, 1.0f);
    if (declaration.init == InitialValue::kNormal) {
      fill_normal(to, count, declaration.init_stddev, philox_key(seed ^ hash_of(entry.name)));
    }
  }
  copy(values_.view(), staged.view());
}

}  // namespace onebit
