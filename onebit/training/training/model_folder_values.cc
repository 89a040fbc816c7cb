// Reads the values of a model folder into a table.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/int8_linear.h"
#include "onebit/math/ops/linear.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::training {

namespace {

// A model's file, compared with the parameters of a table.
struct MatchedFile {
  std::shared_ptr<const formats::TensorSource> source;
  formats::MatchReport report;
};

MatchedFile match_file(const ParameterTable& table, const Path& model_folder,
                       const formats::MatchRules& rules) {
  if (const auto changed = formats::changed_files(model_folder); !changed.empty()) {
    log_warning("{}: changed since the model was written: {}", model_folder.string(),
                fmt::join(changed, ", "));
  }
  const auto source = formats::open_model(model_folder);
  if (!source->prefix_report().empty()) {
    log_info("{}: {}", source->place(), source->prefix_report());
  }
  std::vector<formats::WantedTensor> wanted;
  for (const auto& entry : table.entries()) wanted.push_back({entry.name, entry.shape});
  formats::MatchReport report = formats::require_match(*source, wanted, rules);
  if (!report.lacking.empty()) {
    log_info("{}: not in the file and left at their initial values: {}", model_folder.string(),
             fmt::join(report.lacking, ", "));
  }
  if (!report.ignored.empty()) {
    log_debug("{}: in the file and not used here: {}", model_folder.string(),
              fmt::join(report.ignored, ", "));
  }
  return {source, std::move(report)};
}

// Reads values part by part, and warns of numbers that are not finite.
class ValueReader {
 public:
  ValueReader(const ParameterTable& table, const MatchedFile& file) : table_(table), file_(file) {}

  // Calls done(elements of the table) after each part of the entry. An entry that the file lacks
  // keeps its values.
  template <typename Done>
  void read(const ParameterEntry& entry, const Done& done) {
    constexpr int64_t kPart = int64_t{1} << 20;  // elements
    const auto& lacking = file_.report.lacking;
    const auto index = file_.source->find(entry.name);
    const bool is_there =
        index && std::find(lacking.begin(), lacking.end(), entry.name) == lacking.end();
    const int64_t elements = entry.shape.elements();
    if (is_there) open(*index);
    for (int64_t begin = 0; begin < elements; begin += kPart) {
      const int64_t count = std::min(kPart, elements - begin);
      const Range part{entry.offset_elements + begin, entry.offset_elements + begin + count};
      if (is_there) read_part(*index, entry.name, begin, part);
      done(part);
    }
  }

 private:
  // Sources that have no mapped file copy a whole tensor at each call of bytes().
  void open(size_t index) {
    copied_.clear();
    bytes_ = {};
    if (file_.source->entries()[index].dtype != DType::kF32) return;
    bytes_ = file_.source->bytes(index, copied_);
  }

  // Nobody will read the tensor again, so pages of its file that have been copied are given back:
  // they would count as the process's memory until the last tensor is read.
  void copy_part(size_t index, int64_t begin, std::span<float> to) {
    if (bytes_.empty()) return file_.source->read_f32(index, begin, to);
    const auto from = bytes_.subspan(static_cast<size_t>(begin) * sizeof(float), to.size_bytes());
    std::memcpy(to.data(), from.data(), from.size());
    if (copied_.empty()) formats::drop_pages(from);
  }

  void read_part(size_t index, const std::string& name, int64_t begin, const Range& part) {
    const View to = table_.values().rows(part.begin, part.end);
    std::span<float> values(to.data<float>(), static_cast<size_t>(to.elements()));
    if (!to.device().is_cpu()) {
      staged_.resize(values.size());
      values = staged_;
    }
    copy_part(index, begin, values);
    if (!is_damaged_ && !std::all_of(values.begin(), values.end(),
                                     [](float value) { return std::isfinite(value); })) {
      log_warning("{}: {} contains values that are not finite, so the results will be meaningless",
                  file_.source->place(), name);
      is_damaged_ = true;
    }
    if (!to.device().is_cpu()) copy(to, ConstView::of(staged_.data(), {to.elements()}));
  }

  const ParameterTable& table_;
  const MatchedFile& file_;
  std::vector<float> staged_;
  std::span<const std::byte> bytes_;  // of the entry, if they are f32
  std::vector<std::byte> copied_;     // what they point into, unless that is the file
  bool is_damaged_ = false;
};

void forget(const View& view) {
  memory::forget(view.device(), view.raw(), view.size_bytes());
}

// A matrix that products read in a form of its own. True: its memory is read no more.
bool pack(Context& context, const ConstView& matrix, bool is_rounded) {
  if (is_rounded && ops::quantise_constant_weight(context, matrix)) return true;
  return ops::pack_constant_weight(context, matrix);
}

// Reads a parameter in the form in which predictions read it: of a matrix that is only multiplied
// the packed copy, `rounded` to int8 or not, of a lookup table the compute copy, of others the
// values and their compute copy. The rest of its memory is given back.
void read_for_inference(Context& context, const ParameterTable& table, int parameter, bool rounded,
                        std::span<const ParameterEntry> entries, ValueReader& reader) {
  const Parameter& placed = table.parameters()[static_cast<size_t>(parameter)];
  const bool is_cast = table.compute_type() != DType::kF32;
  const bool keeps_values = !placed.declaration.only_multiplied && !placed.declaration.lookup;
  const auto zero = [&](const View& view) {
    memory::fill_zero(view.device(), view.raw(), view.size_bytes());
  };
  // Elements that no entry has: padding rows.
  const ParameterEntry& last = entries.back();
  const Range padding{last.offset_elements + last.shape.elements(), placed.range.end};
  zero(table.values().rows(padding.begin, padding.end));
  if (is_cast) zero(table.compute_values().rows(padding.begin, padding.end));
  for (const ParameterEntry& entry : entries) {
    reader.read(entry, [&](const Range& part) {
      if (!is_cast) return;
      const View values = table.values().rows(part.begin, part.end);
      ops::cast(context, {.from = values, .to = table.compute_values().rows(part.begin, part.end)});
      if (context.device().is_cpu() && !keeps_values) forget(values);
    });
  }
  const View computed = table.compute_value(parameter);
  if (placed.declaration.only_multiplied && pack(context, computed, rounded)) forget(computed);
}

}  // namespace

formats::MatchReport load_values(ParameterTable& table, const Path& model_folder,
                                 const formats::MatchRules& rules) {
  MatchedFile file = match_file(table, model_folder, rules);
  ValueReader reader(table, file);
  for (const ParameterEntry& entry : table.entries()) reader.read(entry, [](const Range&) {});
  return std::move(file.report);
}

DType usual_compute_type(Device device) {
  return device.is_cpu() ? DType::kF32 : DType::kBF16;
}

std::string_view compute_name(DType compute) {
  return compute == kInt8 ? "int8" : name_of(compute);
}

ConstantWeights load_for_inference(Context& context, ParameterTable& table,
                                   std::optional<DType> compute, const Path& model_folder,
                                   const formats::MatchRules& rules) {
  const bool rounded = compute == kInt8;
  if (rounded) {
    const std::string why = ops::why_no_int8(context);
    require(why.empty(), "{}: int8 is not possible: {}; use --compute f32 or bf16",
            model_folder.string(), why);
    compute = DType::kF32;
  }
  const DType type = compute.value_or(usual_compute_type(context.device()));
  if (!compute && type != DType::kF32) {
    log_info("{}: computes in {}, as is usual on this device (--compute f32 is exact and slower)",
             model_folder.string(), name_of(type));
  }
  ONEBIT_INVARIANT(rules.may_lack.empty());
  const MatchedFile file = match_file(table, model_folder, rules);
  table.allocate(context.device(), type, TableUse::kInference);
  const View all = table.compute_values();
  ConstantWeights weights(context, all.raw(), all.size_bytes());
  ValueReader reader(table, file);
  std::span<const ParameterEntry> rest = table.entries();
  for (int parameter = 0; !rest.empty(); ++parameter) {
    const auto end = std::find_if(rest.begin(), rest.end(), [&](const ParameterEntry& entry) {
      return entry.parameter != parameter;
    });
    const auto count = static_cast<size_t>(end - rest.begin());
    read_for_inference(context, table, parameter, rounded, rest.first(count), reader);
    rest = rest.subspan(count);
  }
  return weights;
}

}  // namespace onebit::training
