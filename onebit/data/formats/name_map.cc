#include "onebit/data/formats/name_map.h"

#include <algorithm>
#include <array>
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
  return name == "bert.embeddings.position_ids" || name == "bert.embeddings.token_type_ids" ||
         name.ends_with("inv_freq") || name == "bert.freqs_cis";
}

// `rows` rows of the shape's columns.
Shape with_rows(const Shape& shape, int64_t rows) {
  Shape result{rows};
  for (int axis = 1; axis < shape.rank(); ++axis) result.append(shape[axis]);
  return result;
}

// Rows are listed one by one, and rows without elements cost a file nothing.
void require_elements(const TensorEntry& entry, const std::string& place) {
  require(entry.shape.elements() > 0, "{}: tensor {} has no elements", place, quote(entry.name));
}

void require_divides(const TensorEntry& entry, int64_t parts, const char* what,
                     const std::string& place) {
  require(entry.shape.rank() >= 1 && parts > 0 && entry.shape[0] % parts == 0,
          "{}: tensor {} has shape {}; {}", place, quote(entry.name), to_string(entry.shape), what);
}

// The row of our query, key or value (`part`) that row `index` of a tensor of all heads is.
int64_t row_in_heads(int64_t index, int64_t head_size, int part) {
  const int64_t head = index / head_size, column = index % head_size, half = head_size / 2;
  const int64_t theirs = part == 2 ? column : column % half * 2 + column / half;
  return (3 * head + part) * head_size + theirs;
}

void pick_third_of_heads(MapStep& step, const TensorEntry& entry, int part, int64_t heads,
                         const std::string& place) {
  require_divides(entry, 6 * heads, "each head has query, key and value of an even number of rows",
                  place);
  require_elements(entry, place);
  const int64_t rows = entry.shape[0] / 3;
  step.operation = MapOperation::kPickedRows;
  step.target.shape = with_rows(entry.shape, rows);
  for (int64_t row = 0; row < rows; ++row) {
    step.picked.push_back({0, row_in_heads(row, rows / heads, part)});
  }
}

MapStep changed(const TensorEntry& entry, size_t source, std::string name, const NameRow& row,
                const std::string& place, int64_t heads = 0) {
  MapStep step{entry, MapOperation::kCopy, {source}};
  step.target.name = std::move(name);
  if (row.change == Change::kTranspose) {
    require(entry.shape.rank() == 2, "{}: tensor {} has shape {}; a matrix was expected", place,
            quote(entry.name), to_string(entry.shape));
    step.operation = MapOperation::kTranspose;
    step.target.shape = Shape{entry.shape[1], entry.shape[0]};
  } else if (row.change == Change::kThirdOfRows) {
    require_divides(entry, 3, "query, key and value are three equal runs of its rows", place);
    step.operation = MapOperation::kRows;
    step.target.shape = with_rows(entry.shape, entry.shape[0] / 3);
    step.first_row = row.part * step.target.shape[0];
  } else if (row.change == Change::kSwappedHalves) {
    require_divides(entry, 2, "the two factors are equal runs of its rows", place);
    require_elements(entry, place);
    step.operation = MapOperation::kPickedRows;
    const int64_t rows = entry.shape[0];
    for (int64_t index = 0; index < rows; ++index) {
      step.picked.push_back({0, (index + rows / 2) % rows});
    }
  } else if (row.change == Change::kThirdOfHeads) {
    pick_third_of_heads(step, entry, row.part, heads, place);
  }
  return step;
}

// Part 0 or 1 of the rows of one of our tensors.
MapStep half_of(const TensorEntry& entry, size_t source, std::string name, const NameRow& row,
                const std::string& place) {
  require_divides(entry, 2, "the two factors are equal runs of its rows", place);
  MapStep step{entry, MapOperation::kRows, {source}};
  step.target.name = std::move(name);
  step.target.shape = with_rows(entry.shape, entry.shape[0] / 2);
  step.first_row = row.part * step.target.shape[0];
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
bool skip(NamePlan& plan, const std::vector<std::string>& names, size_t i, bool tied) {
  if (is_buffer(names[i])) {
    plan.skipped.push_back({names[i], "a buffer without parameters"});
    return true;
  }
  if (names[i].starts_with("discriminator_predictions.")) {
    plan.skipped.push_back({names[i], "the head of ELECTRA's discriminator, which no task uses"});
    return true;
  }
  for (const Alias& alias : kAliases) {
    if (names[i] != alias.name || !tied) continue;
    const auto original = std::find(names.begin(), names.end(), alias.original);
    if (original == names.end()) return false;
    plan.tied.emplace_back(i, static_cast<size_t>(original - names.begin()));
    plan.skipped.push_back({names[i], fmt::format("the same as {}", alias.original)});
    return true;
  }
  return false;
}

// Rows that are the same in all families have BERT's prefix.
std::string with_prefix_of(const Family& family, std::string name) {
  const std::string_view ours = bert_family().tensor_prefix;
  if (name.starts_with(ours)) name.replace(0, ours.size(), family.tensor_prefix);
  return name;
}

// Tensors that become one, by their part of it.
struct Parts {
  Change change = Change::kNone;
  std::array<const TensorEntry*, 3> entries = {};
  size_t count() const { return change == Change::kHalfOfOurs ? 2 : 3; }
};

// Joins the parts of a tensor once all are present.
MapStep joined(std::span<const TensorEntry> entries, const Parts& parts, const std::string& name,
               const ModelNames& names, const std::string& place) {
  const TensorEntry* first = nullptr;
  for (const TensorEntry* part : parts.entries) first = first == nullptr ? part : first;
  MapStep step{*first, MapOperation::kConcatRows, {}};
  for (size_t index = 0; index < parts.count(); ++index) {
    const TensorEntry* part = parts.entries.at(index);
    require(part != nullptr, "{}: {} needs {} of its layer; one is missing beside {}", place,
            quote(name),
            parts.count() == 3 ? "query, key and value" : "the gate and the other factor",
            quote(first->name));
    require(part->shape == first->shape && part->dtype == first->dtype && part->shape.rank() >= 1,
            "{}: tensors {} {} and {} {} cannot be joined to {}", place, quote(first->name),
            to_string(first->shape), quote(part->name), to_string(part->shape), quote(name));
    step.sources.push_back(static_cast<size_t>(part - entries.data()));
  }
  const int64_t rows = first->shape[0];
  step.target.name = name;
  step.target.shape = with_rows(first->shape, static_cast<int64_t>(parts.count()) * rows);
  if (parts.change != Change::kThirdOfHeads) return step;
  const int64_t heads = names.attention_heads;
  require_divides(*first, 2 * heads, "each head has an even number of rows", place);
  require_elements(*first, place);
  step.operation = MapOperation::kPickedRows;
  step.picked.resize(static_cast<size_t>(3 * rows));
  for (int part = 0; part < 3; ++part) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t target = row_in_heads(row, rows / heads, part);
      step.picked[static_cast<size_t>(target)] = {static_cast<size_t>(part), row};
    }
  }
  return step;
}

// onebit's names of a family's tensors. A name without a row, or with several, stays.
std::vector<std::string> names_in_onebit(const std::vector<std::string>& plain,
                                         const ModelNames& names) {
  std::vector<std::string> result;
  for (const std::string& name : plain) {
    const auto found = rows_to_ours(names, name);
    result.push_back(found.size() == 1 ? filled(found[0].row->ours, found[0]) : name);
  }
  return result;
}

}  // namespace

Naming detect_naming(std::span<const TensorEntry> entries, const std::string& place,
                     const Family& family) {
  const auto has = [&](std::string_view part) {
    return any_name(entries,
                    [&](const std::string& name) { return name.find(part) != std::string::npos; });
  };
  if (!family.is_bert()) {
    require(has(family.word_embeddings),
            "{}: not a {}, which its config.json names: no name of its {} tensors ends with {}: {}",
            place, family.title, entries.size(), quote(family.word_embeddings),
            some_names(entries));
    return Naming::kHuggingFace;
  }
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

namespace {

// Plans one tensor that a row, or several, give a name in onebit.
class PlanToOurs {
 public:
  PlanToOurs(std::span<const TensorEntry> entries, const ModelNames& names, std::string place)
      : entries_(entries), names_(names), place_(std::move(place)) {}

  void add(size_t i, const RowMatch& match) {
    const std::string ours = filled(match.row->ours, match);
    if (match.row->change != Change::kHalfOfOurs) {
      return add_step(plan, taken_,
                      changed(entries_[i], i, ours, *match.row, place_, names_.attention_heads),
                      entries_[i].name, place_);
    }
    Parts& parts = parts_[ours];
    parts.change = match.row->change;
    const TensorEntry*& part = parts.entries.at(static_cast<size_t>(match.row->part));
    require(part == nullptr, "{}: tensors {} and {} are the same: remove one of them from the file",
            place_, quote(part == nullptr ? "" : part->name), quote(entries_[i].name));
    part = &entries_[i];
  }
  void add_same(size_t i, const std::string& name) {
    static constexpr NameRow kSame{};
    add_step(plan, taken_, changed(entries_[i], i, name, kSame, place_), entries_[i].name, place_);
  }
  void finish() {
    for (const auto& [name, parts] : parts_) {
      add_step(plan, taken_, joined(entries_, parts, name, names_, place_), name, place_);
    }
  }

  NamePlan plan;

 private:
  std::span<const TensorEntry> entries_;
  const ModelNames& names_;
  std::string place_;
  std::set<std::string> taken_;
  std::map<std::string, Parts> parts_;
};

}  // namespace

NamePlan plan_to_ours(std::span<const TensorEntry> entries, Naming from, const std::string& place,
                      const ModelNames& names) {
  const PlainNames plain = plain_names(entries, from, place, *names.family);
  const std::vector<std::string> ours = names_in_onebit(plain.names, names);
  const OptimizerVariables variables(entries, plain.names);
  const bool pre_layer_norm = std::any_of(ours.begin(), ours.end(), [](const std::string& name) {
    return name.starts_with("bert.encoder.FinalLayerNorm.");
  });
  const auto rows =
      name_rows(from == Naming::kGammaBeta ? Naming::kHuggingFace : from, pre_layer_norm);
  PlanToOurs planner(entries, names, place);
  planner.plan.prefix_report = plain.report();
  planner.plan.names = names;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (skip(planner.plan, ours, i, names.family->choices.tied)) continue;
    const std::string name = from == Naming::kGoogle ? plain.names[i] : modern_norm(plain.names[i]);
    const auto found = names.family->rows.empty() ? matching_rows(rows, &NameRow::theirs, name)
                                                  : rows_to_ours(names, name);
    for (const RowMatch& match : found) planner.add(i, match);
    if (!found.empty()) continue;
    if (const auto reason = variables.reason(i)) {
      planner.plan.skipped.push_back({plain.names[i], *reason});
    } else {
      planner.add_same(i, name);
    }
  }
  planner.finish();
  return std::move(planner.plan);
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
    const bool has_words = step.target.name == kWordEmbeddings ||
                           step.target.name == "cls.predictions.bias" ||
                           step.target.name == "cls.predictions.decoder.weight";
    if (!has_words || step.operation != MapOperation::kCopy || step.target.shape.rank() < 1 ||
        step.target.shape[0] <= rows) {
      continue;
    }
    step.operation = MapOperation::kRows;
    step.first_row = 0;
    step.target.shape = with_rows(step.target.shape, rows);
  }
}

std::string own_name(const ModelNames& names, const std::string& ours) {
  const auto found = rows_from_ours(names, ours);
  return with_prefix_of(*names.family,
                        found.empty() ? ours : filled(found[0].row->theirs, found[0]));
}

NamePlan plan_from_ours(std::span<const TensorEntry> entries, Naming to, const std::string& place,
                        const ModelNames& names) {
  const Family& family = *names.family;
  require(family.is_bert() || to == Naming::kHuggingFace,
          "{}: a {} has no names of {}; only a BERT has", place, family.title, name_of(to));
  const bool pre_layer_norm = any_name(entries, [](const std::string& name) {
    return name.starts_with("bert.encoder.FinalLayerNorm.");
  });
  const auto rows = name_rows(to, pre_layer_norm);
  NamePlan plan;
  std::set<std::string> taken;
  std::map<std::string, Parts> thirds;
  static constexpr NameRow kSame{};
  const auto with_prefix = [&](std::string name) {
    return with_prefix_of(family, std::move(name));
  };
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto found = family.rows.empty() ? matching_rows(rows, &NameRow::ours, entries[i].name)
                                           : rows_from_ours(names, entries[i].name);
    require(!found.empty() || to != Naming::kGoogle, "{}: tensor {} has no name in the naming {}",
            place, quote(entries[i].name), name_of(to));
    const RowMatch match = found.empty() ? RowMatch{&kSame, 0} : found[0];
    const NameRow& row = *match.row;
    const std::string name =
        with_prefix(found.empty() ? entries[i].name : filled(row.theirs, match));
    if (row.change == Change::kThirdOfRows || row.change == Change::kThirdOfHeads) {
      thirds[name].change = row.change;
      thirds[name].entries.at(static_cast<size_t>(row.part)) = &entries[i];
    } else if (row.change == Change::kHalfOfOurs) {
      for (const RowMatch& half : found) {
        add_step(
            plan, taken,
            half_of(entries[i], i, with_prefix(filled(half.row->theirs, half)), *half.row, place),
            entries[i].name, place);
      }
    } else {
      add_step(plan, taken, changed(entries[i], i, name, row, place), entries[i].name, place);
    }
  }
  for (const auto& [name, parts] : thirds) {
    add_step(plan, taken, joined(entries, parts, name, names, place), name, place);
  }
  return plan;
}

}  // namespace onebit::formats
