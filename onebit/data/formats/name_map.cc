#include "onebit/data/formats/name_map.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "onebit/data/formats/plain_names.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

namespace {

constexpr std::string_view kWordEmbeddings = "bert.embeddings.word_embeddings.weight";

// A tensor that duplicates another.
struct Alias {
  std::string_view name, original;
};
constexpr Alias kAliases[] = {
    {"cls.predictions.decoder.weight", kWordEmbeddings},
    {"cls.predictions.decoder.bias", "cls.predictions.bias"},
};

bool any_name(std::span<const TensorEntry> entries, auto&& test) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const TensorEntry& entry) { return test(entry.name); });
}

bool is_buffer(std::string_view name) {
  return name == "bert.embeddings.position_ids" || name == "bert.embeddings.token_type_ids";
}

struct RowMatch {
  const NameRow* row;
  int index;
};

// The rows of the table whose `side` matches `name`: none, one, or three for a fused tensor.
std::vector<RowMatch> matching_rows(std::span<const NameRow> rows, std::string_view NameRow::*side,
                                    std::string_view name) {
  std::vector<RowMatch> found;
  int index = 0;
  for (const NameRow& row : rows) {
    if (matches_pattern(row.*side, name, index)) found.push_back({&row, index});
  }
  return found;
}

MapStep changed(const TensorEntry& entry, size_t source, std::string name, const NameRow& row,
                const std::string& place) {
  MapStep step{entry, MapOperation::kCopy, {source}};
  step.target.name = std::move(name);
  if (row.change == Change::kTranspose) {
    require(entry.shape.rank() == 2, "{}: tensor {} has shape {}; a matrix was expected", place,
            quote(entry.name), to_string(entry.shape));
    step.operation = MapOperation::kTranspose;
    step.target.shape = Shape{entry.shape[1], entry.shape[0]};
  } else if (row.change == Change::kThirdOfRows) {
    require(entry.shape.rank() >= 1 && entry.shape[0] % 3 == 0,
            "{}: tensor {} has shape {}; query, key and value are three equal runs of its rows",
            place, quote(entry.name), to_string(entry.shape));
    step.operation = MapOperation::kRows;
    step.target.shape = Shape{entry.shape[0] / 3};
    for (int axis = 1; axis < entry.shape.rank(); ++axis) {
      step.target.shape.append(entry.shape[axis]);
    }
    step.first_row = row.part * step.target.shape[0];
  }
  return step;
}

// Adds a step. Error: another tensor has the same name.
void add_step(NamePlan& plan, std::set<std::string>& taken, MapStep step, const std::string& source,
              const std::string& place) {
  require(taken.insert(step.target.name).second,
          "{}: tensor {} is called {} here, as another tensor is: remove one of them from the file",
          place, quote(source), quote(step.target.name));
  plan.steps.push_back(std::move(step));
}

// Our spelling of a gamma or beta, else the name itself.
std::string modern_norm(const std::string& name) {
  const auto found = matching_rows(name_rows(Naming::kGammaBeta, false), &NameRow::theirs, name);
  return found.empty() ? name : fill_pattern(found[0].row->ours, found[0].index);
}

// Leaves out what is no parameter, or the copy of one.
bool skip(NamePlan& plan, const std::vector<std::string>& names, size_t i) {
  if (is_buffer(names[i])) {
    plan.skipped.push_back({names[i], "a buffer without parameters"});
    return true;
  }
  for (const Alias& alias : kAliases) {
    if (names[i] != alias.name) continue;
    const auto original = std::find(names.begin(), names.end(), alias.original);
    if (original == names.end()) return false;
    plan.tied.emplace_back(i, static_cast<size_t>(original - names.begin()));
    plan.skipped.push_back({names[i], fmt::format("the same as {}", alias.original)});
    return true;
  }
  return false;
}

// Joins the thirds of a fused tensor once all are present.
MapStep joined(std::span<const TensorEntry> entries, const std::array<const TensorEntry*, 3>& parts,
               const std::string& name, const std::string& place) {
  for (const TensorEntry* part : parts) {
    require(part != nullptr, "{}: {} needs query, key and value of its layer; one is missing",
            place, quote(name));
    require(
        part->shape == parts[0]->shape && part->dtype == parts[0]->dtype && part->shape.rank() >= 1,
        "{}: tensors {} {} and {} {} cannot be joined to {}", place, quote(parts[0]->name),
        to_string(parts[0]->shape), quote(part->name), to_string(part->shape), quote(name));
  }
  MapStep step{*parts[0], MapOperation::kConcatRows, {}};
  step.target.name = name;
  step.target.shape = Shape{3 * parts[0]->shape[0]};
  for (int axis = 1; axis < parts[0]->shape.rank(); ++axis) {
    step.target.shape.append(parts[0]->shape[axis]);
  }
  for (const TensorEntry* part : parts) {
    step.sources.push_back(static_cast<size_t>(part - entries.data()));
  }
  return step;
}

}  // namespace

Naming detect_naming(std::span<const TensorEntry> entries, const std::string& place) {
  const auto has = [&](std::string_view part) {
    return any_name(entries,
                    [&](const std::string& name) { return name.find(part) != std::string::npos; });
  };
  if (has("bert/embeddings/") || has("embeddings/word_embeddings")) return Naming::kGoogle;
  if (has("encoder.layer.") && has(".attn_qkvw")) return Naming::kFused;
  if (has("encoder.layer.") && has(".dense_act.")) return Naming::kPlain;
  if (has("LayerNorm.gamma")) return Naming::kGammaBeta;
  if (has("embeddings.word_embeddings.weight")) return Naming::kHuggingFace;
  fail(
      "{}: not a BERT: none of the known namings (Hugging Face, NVIDIA/DeepSpeed plain, DeepSpeed "
      "fused, Google TensorFlow 1) fits the names of its {} tensors: {}",
      place, entries.size(), some_names(entries));
}

NamePlan plan_to_ours(std::span<const TensorEntry> entries, Naming from, const std::string& place) {
  const PlainNames plain = plain_names(entries, from, place);
  const std::vector<std::string>& names = plain.names;
  const OptimizerVariables variables(entries, names);
  const bool pre_layer_norm = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("bert.encoder.FinalLayerNorm.");
  });
  const auto rows =
      name_rows(from == Naming::kGammaBeta ? Naming::kHuggingFace : from, pre_layer_norm);
  NamePlan plan;
  plan.prefix_report = plain.report();
  std::set<std::string> taken;
  static constexpr NameRow kSame{};
  for (size_t i = 0; i < entries.size(); ++i) {
    if (skip(plan, names, i)) continue;
    const std::string name = from == Naming::kGoogle ? names[i] : modern_norm(names[i]);
    const auto found = matching_rows(rows, &NameRow::theirs, name);
    for (const auto& [row, index] : found) {
      add_step(plan, taken, changed(entries[i], i, fill_pattern(row->ours, index), *row, place),
               entries[i].name, place);
    }
    if (!found.empty()) continue;
    if (const auto reason = variables.reason(i)) {
      plan.skipped.push_back({names[i], *reason});
    } else {
      add_step(plan, taken, changed(entries[i], i, name, kSame, place), entries[i].name, place);
    }
  }
  return plan;
}

NamePlan plan_without(std::span<const TensorEntry> entries, const std::string& prefix) {
  NamePlan plan;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name.starts_with(prefix)) {
      plan.skipped.push_back({entries[i].name, "as requested by --drop"});
    } else {
      plan.steps.push_back({entries[i], MapOperation::kCopy, {i}});
    }
  }
  return plan;
}

void cut_vocabulary(NamePlan& plan, int64_t rows) {
  for (MapStep& step : plan.steps) {
    const bool has_words =
        step.target.name == kWordEmbeddings || step.target.name == "cls.predictions.bias";
    if (!has_words || step.operation != MapOperation::kCopy || step.target.shape.rank() < 1 ||
        step.target.shape[0] <= rows) {
      continue;
    }
    step.operation = MapOperation::kRows;
    step.first_row = 0;
    Shape shape{rows};
    for (int axis = 1; axis < step.target.shape.rank(); ++axis) {
      shape.append(step.target.shape[axis]);
    }
    step.target.shape = shape;
  }
}

NamePlan plan_from_ours(std::span<const TensorEntry> entries, Naming to, const std::string& place) {
  const bool pre_layer_norm = any_name(entries, [](const std::string& name) {
    return name.starts_with("bert.encoder.FinalLayerNorm.");
  });
  const auto rows = name_rows(to, pre_layer_norm);
  NamePlan plan;
  std::set<std::string> taken;
  std::map<std::string, std::array<const TensorEntry*, 3>> thirds;
  static constexpr NameRow kSame{};
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto found = matching_rows(rows, &NameRow::ours, entries[i].name);
    require(!found.empty() || to != Naming::kGoogle, "{}: tensor {} has no name in the naming {}",
            place, quote(entries[i].name), name_of(to));
    const NameRow& row = found.empty() ? kSame : *found[0].row;
    const std::string name =
        found.empty() ? entries[i].name : fill_pattern(row.theirs, found[0].index);
    if (row.change == Change::kThirdOfRows) {
      thirds[name][row.part] = &entries[i];
    } else {
      add_step(plan, taken, changed(entries[i], i, name, row, place), entries[i].name, place);
    }
  }
  for (const auto& [name, parts] : thirds) {
    add_step(plan, taken, joined(entries, parts, name, place), name, place);
  }
  return plan;
}

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
  }
  return {};
}

std::shared_ptr<RenamedSource> under_our_names(std::shared_ptr<const TensorSource> source,
                                               Naming* naming) {
  const Naming found = detect_naming(source->entries(), source->place());
  if (naming != nullptr) *naming = found;
  NamePlan plan = plan_to_ours(source->entries(), found, source->place());
  return std::make_shared<RenamedSource>(std::move(source), std::move(plan));
}

}  // namespace onebit::formats
