#include "onebit/exchange/one_bit/still_entries.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::optim {
namespace {

constexpr int64_t kBlock = kernels::kBlockElements;

std::vector<float> read(ConstView flat, int64_t begin, int64_t end) {
  std::vector<float> values(static_cast<size_t>(end - begin));
  copy(View::of(values.data(), {end - begin}), flat.rows(begin, end));
  return values;
}

void write(View flat, int64_t begin, const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  copy(flat.rows(begin, begin + count), ConstView::of(values.data(), {count}));
}

}  // namespace

Range held_range(const ParameterTable& table, const std::string& name, int64_t rows) {
  const auto entry_of_key = [&]() -> const ParameterEntry& {
    try {
      return table.entry(name);
    } catch (const Error& error) {
      fail("the recipe's optimizer.params.exp_avg_mask: {}; remove it, or give a tensor's name",
           error.what());
    }
  };
  const ParameterEntry& entry = entry_of_key();
  require(rows <= entry.shape[0],
          "optimizer.params.exp_avg_mask sets {} rows of {} to be updated, but the tensor has only "
          "{}: give at most {}",
          rows, name, entry.shape[0], entry.shape[0]);
  const int64_t columns = entry.shape.elements() / entry.shape[0];
  return {entry.offset_elements + rows * columns, entry.offset_elements + entry.shape.elements()};
}

StillEntries::StillEntries(const ParameterTable& table,
                           const std::map<std::string, int64_t>& moving_rows)
    : table_(table),
      bitmap_(
          Tensor::zeros(table.device(), DType::kU8, {layout(table.size_elements())[0].numbers})),
      bits_(static_cast<size_t>(bitmap_.shape().elements())) {
  for (const auto& [name, rows] : moving_rows) held_.push_back(held_range(table, name, rows));
  for (const Parameter& parameter : table.parameters()) {
    for (const auto& [begin, end] : parameter.declaration.held) {
      ONEBIT_INVARIANT(0 <= begin && begin < end && end <= parameter.range.elements());
      held_.push_back({parameter.range.begin + begin, parameter.range.begin + end});
    }
  }
  if (held_.empty()) return;
  held_bits_.resize(bits_.size());
  for (const auto& [begin, end] : held_) {
    for (int64_t element = begin; element < end; ++element) {
      held_bits_[static_cast<size_t>(element / 8)] |= static_cast<uint8_t>(1u << (element % 8));
    }
  }
}

// One bit per element.
StateLayout StillEntries::layout(int64_t elements) {
  return {{.name = "still",
           .extent = Extent::kNumber,
           .numbers = (elements + 7) / 8,
           .type = DType::kU8}};
}

void StillEntries::hold(View momentum, View variance) {
  copy(View::of(bits_.data(), {static_cast<int64_t>(bits_.size())}), bitmap_.view());
  for (const auto& [begin, end] : held_) {
    const std::vector<float> zeros(static_cast<size_t>(end - begin));
    write(momentum, begin, zeros);
    write(variance, begin, zeros);
    for (int64_t element = begin; element < end; ++element) set_still(element, true);
  }
  copy(bitmap_.view(), ConstView::of(bits_.data(), {static_cast<int64_t>(bits_.size())}));
}

void StillEntries::restore(ConstView variance) {
  const std::vector<float> values = read(variance, 0, variance.elements());
  std::fill(bits_.begin(), bits_.end(), uint8_t{0});
  for (size_t element = 0; element < values.size(); ++element) {
    if (values[element] == 0) set_still(static_cast<int64_t>(element), true);
  }
  copy(bitmap_.view(), ConstView::of(bits_.data(), {static_cast<int64_t>(bits_.size())}));
  refresh();
}

void StillEntries::refresh() {
  copy(View::of(bits_.data(), {static_cast<int64_t>(bits_.size())}), bitmap_.view());
  rows_.clear();
  count_ = 0;
  for (const Parameter& parameter : table_.parameters()) add_rows(parameter);
}

void StillEntries::add_rows(const Parameter& parameter) {
  const Shape& shape = parameter.storage_shape;
  const int64_t rows = shape.rank() == 1 ? 1 : shape[0];
  const int64_t columns = shape.elements() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = parameter.range.begin + row * columns, end = begin + columns;
    const int64_t still = still_between(begin, end);
    count_ += still;
    if (still > 0 && any_can_wake(begin, end)) rows_.push_back({begin, end});
  }
}

bool StillEntries::any_can_wake(int64_t begin, int64_t end) const {
  if (held_bits_.empty()) return still_between(begin, end) > 0;
  while (begin < end && !can_wake(begin)) ++begin;
  return begin < end;
}

Json StillEntries::held_by_table() const {
  int64_t elements = 0;
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const Parameter& parameter : table_.parameters()) {
    for (const auto& [begin, end] : parameter.declaration.held) {
      elements += end - begin;
      for (const int64_t bound : {begin, end}) {
        hash = (hash ^ static_cast<uint64_t>(parameter.range.begin + bound)) * 0x100000001B3ull;
      }
    }
  }
  return elements == 0 ? Json() : Json{{"elements", elements}, {"hash", hash}};
}

void StillEntries::set_still(int64_t element, bool still) {
  const auto mask = static_cast<uint8_t>(1u << (element % 8));
  uint8_t& byte = bits_[static_cast<size_t>(element / 8)];
  byte = static_cast<uint8_t>(still ? byte | mask : byte & ~mask);
}

int64_t StillEntries::still_between(int64_t begin, int64_t end) const {
  int64_t still = 0;
  while (begin < end) {
    if (begin % 8 == 0 && begin + 8 <= end) {
      still += std::popcount(bits_[static_cast<size_t>(begin / 8)]);
      begin += 8;
    } else {
      still += is_still(begin++) ? 1 : 0;
    }
  }
  return still;
}

std::vector<uint8_t> StillEntries::touched_rows(ConstView gradients,
                                                std::span<const uint8_t> block_flags) {
  const auto is_flagged = [](uint8_t flags) { return (flags & updates::kBlockStillMoved) != 0; };
  if (std::none_of(block_flags.begin(), block_flags.end(), is_flagged)) return {};
  std::vector<uint8_t> touched(rows_.size(), 0);
  bool any = false;
  for (size_t index = 0; index < rows_.size(); ++index) {
    const auto [begin, end] = rows_[index];
    const auto first = block_flags.begin() + begin / kBlock;
    const auto last = block_flags.begin() + (end - 1) / kBlock + 1;
    if (std::none_of(first, last, is_flagged)) continue;
    const std::vector<float> gradient = read(gradients, begin, end);
    for (int64_t element = begin; element < end && touched[index] == 0; ++element) {
      const bool moved = gradient[static_cast<size_t>(element - begin)] != 0;
      if (moved && can_wake(element)) touched[index] = 1;
    }
    any = any || touched[index] != 0;
  }
  return any ? touched : std::vector<uint8_t>();
}

std::vector<size_t> StillEntries::agreed_rows(comm::Communicator& communicator,
                                              std::vector<uint8_t> touched) const {
  touched.resize(rows_.size(), 0);
  comm::unite_in_chunks(communicator, touched);
  std::vector<size_t> rows;
  for (size_t index = 0; index < rows_.size(); ++index) {
    if (touched[index] != 0) rows.push_back(index);
  }
  return rows;
}

std::vector<float> StillEntries::row_gradients(const Row& row, const Wake& args) {
  std::vector<float> gradients(static_cast<size_t>(row.end - row.begin), 0.0f);
  const double share = 1.0 / args.sources;
  for (const auto& [range, place] : compress::within(args.shares, {row.begin, row.end})) {
    const std::vector<float> part = read(args.gradients, range.begin, range.end);
    for (int64_t i = 0; i < range.elements(); ++i) {
      const auto block = static_cast<size_t>((place + i) / kBlock);
      const double scale = args.block_scales.empty() ? 1 : args.block_scales[block];
      gradients[static_cast<size_t>(range.begin + i - row.begin)] =
          static_cast<float>(part[static_cast<size_t>(i)] * (scale * share));
    }
  }
  return gradients;
}

std::vector<StillEntries::Woken> StillEntries::wake(comm::Communicator& communicator,
                                                    std::vector<uint8_t> touched,
                                                    const Wake& given) {
  const compress::OwnedRange all{.range = {0, table_.size_elements()}};
  Wake args = given;
  if (args.shares.empty()) args.shares = std::span(&all, 1);
  if (args.sources == 0) args.sources = communicator.world_size();
  const std::vector<size_t> rows = agreed_rows(communicator, std::move(touched));
  std::vector<float> gradient;
  for (const size_t index : rows) {
    const std::vector<float> row = row_gradients(rows_[index], args);
    gradient.insert(gradient.end(), row.begin(), row.end());
  }
  comm::sum_in_chunks(communicator, gradient);

  std::vector<Woken> woken;
  std::vector<size_t> awake;
  size_t at = 0;
  for (const size_t index : rows) {
    const auto count = static_cast<size_t>(rows_[index].end - rows_[index].begin);
    const int64_t entries =
        wake_row(rows_[index], std::span(gradient).subspan(at, count), args, woken);
    at += count;
    count_ -= entries;
    if (entries > 0) awake.push_back(index);
  }
  forget_rows(awake);
  return woken;
}

// Removes rows that woke from the list and updates the bitmap on the device.
void StillEntries::forget_rows(const std::vector<size_t>& awake) {
  for (const size_t index : awake) {
    Row& row = rows_[index];
    const int64_t first = row.begin / 8, last = (row.end + 7) / 8;
    copy(bitmap_.view().rows(first, last), ConstView::of(bits_.data() + first, {last - first}));
    row = {};
  }
  std::erase_if(rows_, [](const Row& row) { return row.end == 0; });
}

int64_t StillEntries::wake_row(Row row, std::span<const float> gradient, const Wake& args,
                               std::vector<Woken>& woken) {
  double square = 0;
  int64_t still = 0;
  for (int64_t element = row.begin; element < row.end; ++element) {
    if (!can_wake(element)) continue;
    const double one = gradient[static_cast<size_t>(element - row.begin)];
    square += one * one;
    ++still;
  }
  // Opposite gradients may cancel exactly. The row then stays still until there is a non-zero
  // gradient.
  if (square == 0) return 0;
  const double mean_square = square / static_cast<double>(still);
  write_variance(row, mean_square, args);
  const double d = std::sqrt(mean_square) + args.epsilon;
  for (int64_t element = row.begin; element < row.end; ++element) {
    if (!can_wake(element)) continue;
    set_still(element, false);
    if (woken.empty() || woken.back().range.end != element) {
      woken.push_back({.range = {element, element}, .momentum = {}});
    }
    const double one = gradient[static_cast<size_t>(element - row.begin)];
    woken.back().range.end = element + 1;
    woken.back().momentum.push_back(static_cast<float>((1 - args.beta1) * one / d));
  }
  return still;
}

void StillEntries::write_variance(const Row& row, double mean_square, const Wake& args) const {
  for (const auto& [range, place] : compress::within(args.shares, {row.begin, row.end})) {
    std::vector<float> variance = read(args.variance, place, place + range.elements());
    for (int64_t element = range.begin; element < range.end; ++element) {
      if (!can_wake(element)) continue;
      variance[static_cast<size_t>(element - range.begin)] =
          std::max(static_cast<float>(mean_square), updates::kSmallestVariance);
    }
    write(args.variance, place, variance);
  }
}

}  // namespace onebit::optim
