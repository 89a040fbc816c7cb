// RenamedSource, which carries out a plan of names.
#include <algorithm>
#include <cstring>
#include <utility>

#include "onebit/data/formats/name_map.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

namespace {

// Blocks small enough that source and target stay in the first-level cache.
constexpr int64_t kBlock = 32;

template <size_t ElementBytes>
void transpose(const std::byte* from, std::byte* to, int64_t rows, int64_t columns) {
  for (int64_t row_begin = 0; row_begin < rows; row_begin += kBlock) {
    const int64_t row_end = std::min(rows, row_begin + kBlock);
    for (int64_t column_begin = 0; column_begin < columns; column_begin += kBlock) {
      const int64_t column_end = std::min(columns, column_begin + kBlock);
      for (int64_t column = column_begin; column < column_end; ++column) {
        for (int64_t row = row_begin; row < row_end; ++row) {
          std::memcpy(to + static_cast<size_t>(column * rows + row) * ElementBytes,
                      from + static_cast<size_t>(row * columns + column) * ElementBytes,
                      ElementBytes);
        }
      }
    }
  }
}

void transpose(const std::byte* from, std::byte* to, int64_t rows, int64_t columns,
               int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return transpose<1>(from, to, rows, columns);
    case 2:
      return transpose<2>(from, to, rows, columns);
    case 4:
      return transpose<4>(from, to, rows, columns);
    default:
      return transpose<8>(from, to, rows, columns);
  }
}

void pick_rows(const TensorSource& source, const MapStep& step, size_t size,
               std::vector<std::byte>& to) {
  std::vector<std::vector<std::byte>> inner(step.sources.size());
  std::vector<std::span<const std::byte>> from;
  for (size_t part = 0; part < step.sources.size(); ++part) {
    from.push_back(source.bytes(step.sources[part], inner[part]));
  }
  to.resize(size);
  const size_t row_bytes = step.picked.empty() ? 0 : size / step.picked.size();
  for (size_t row = 0; row < step.picked.size(); ++row) {
    const PickedRow& picked = step.picked[row];
    const auto bytes =
        from[picked.source].subspan(static_cast<size_t>(picked.row) * row_bytes, row_bytes);
    std::copy(bytes.begin(), bytes.end(), to.begin() + static_cast<int64_t>(row * row_bytes));
  }
}

void require_tied(const TensorSource& source, size_t alias, size_t original) {
  const TensorEntry& a = source.entries()[alias];
  const TensorEntry& b = source.entries()[original];
  std::vector<std::byte> scratch_a, scratch_b;
  bool same = a.shape == b.shape && a.dtype == b.dtype;
  if (same) {
    const auto left = source.bytes(alias, scratch_a), right = source.bytes(original, scratch_b);
    same = std::equal(left.begin(), left.end(), right.begin(), right.end());
  }
  require(same, "{}: tensors {} and {} must be the same (the decoder is tied), and differ",
          source.place(), quote(a.name), quote(b.name));
}

}  // namespace

RenamedSource::RenamedSource(std::shared_ptr<const TensorSource> source, NamePlan plan)
    : source_(std::move(source)),
      steps_(std::move(plan.steps)),
      skipped_(std::move(plan.skipped)),
      prefix_report_(std::move(plan.prefix_report)) {
  for (const auto& [alias, original] : plan.tied) require_tied(*source_, alias, original);
  std::vector<TensorEntry> entries;
  for (const MapStep& step : steps_) entries.push_back(step.target);
  set_entries(source_->place(), std::move(entries));
}

std::span<const std::byte> RenamedSource::readable_bytes(size_t index,
                                                         std::vector<std::byte>& scratch) const {
  const MapStep& step = steps_[index];
  const auto size = static_cast<size_t>(step.target.size_bytes());
  switch (step.operation) {
    case MapOperation::kCopy:
      return source_->bytes(step.sources[0], scratch);
    case MapOperation::kRows: {
      const int64_t rows = step.target.shape[0];
      const size_t row_bytes = rows == 0 ? 0 : size / static_cast<size_t>(rows);
      return source_->bytes(step.sources[0], scratch)
          .subspan(static_cast<size_t>(step.first_row) * row_bytes, size);
    }
    case MapOperation::kTranspose: {
      std::vector<std::byte> inner;
      const auto from = source_->bytes(step.sources[0], inner);
      scratch.resize(size);
      transpose(from.data(), scratch.data(), step.target.shape[1], step.target.shape[0],
                size_bytes_of(step.target.dtype));
      return scratch;
    }
    case MapOperation::kConcatRows: {
      std::vector<std::byte> inner;
      std::vector<std::byte> all;
      all.reserve(size);
      for (const size_t part : step.sources) {
        const auto from = source_->bytes(part, inner);
        all.insert(all.end(), from.begin(), from.end());
      }
      scratch = std::move(all);
      return scratch;
    }
    case MapOperation::kPickedRows:
      pick_rows(*source_, step, size, scratch);
      return scratch;
  }
  return {};
}

std::shared_ptr<RenamedSource> under_our_names(std::shared_ptr<const TensorSource> source,
                                               Naming* naming, const ModelNames& names) {
  const Naming found = detect_naming(source->entries(), source->place(), *names.family);
  if (naming != nullptr) *naming = found;
  NamePlan plan = plan_to_ours(source->entries(), found, source->place(), names);
  return std::make_shared<RenamedSource>(std::move(source), std::move(plan));
}

std::shared_ptr<RenamedSource> under_own_names(std::shared_ptr<const TensorSource> source,
                                               const ModelNames& names) {
  NamePlan plan = plan_from_ours(source->entries(), Naming::kHuggingFace, source->place(), names);
  return std::make_shared<RenamedSource>(std::move(source), std::move(plan));
}

}  // namespace onebit::formats
