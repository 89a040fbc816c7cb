// Reads the values of a model folder into a table.
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/model/head_names.h"
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

// An exponent of ones: infinite, or not a number. Without an early end, so that it is vectorized.
bool are_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  bool are_finite = true;
  for (const float value : values) {
    are_finite &= (std::bit_cast<uint32_t>(value) & kExponent) != kExponent;
  }
  return are_finite;
}

constexpr int64_t kPartElements = int64_t{1} << 20;

// Reads values part by part, and warns of numbers that are not finite.
class ValueReader {
 public:
  explicit ValueReader(const MatchedFile& file) : file_(file) {}

  // Calls done(first element, values) for each part of the entry, of at most `part_elements`. An
  // entry that the file lacks has none.
  template <typename Done>
  void read(const ParameterEntry& entry, int64_t part_elements, const Done& done) {
    const auto& lacking = file_.report.lacking;
    const auto index = file_.source->find(entry.name);
    if (!index || std::find(lacking.begin(), lacking.end(), entry.name) != lacking.end()) return;
    open(*index);
    const int64_t elements = entry.shape.elements();
    for (int64_t begin = 0; begin < elements; begin += part_elements) {
      const auto count = static_cast<size_t>(std::min(part_elements, elements - begin));
      const std::span<const float> values = part(*index, begin, count);
      warn_of_damage(entry.name, values);
      done(begin, values);
      // Nobody will read the tensor again, so pages of its file are given back: they would count as
      // the process's memory until the last tensor is read.
      if (!bytes_.empty() && copied_.empty()) formats::drop_pages(part_bytes(begin, count));
    }
  }

  // The values of an entry that the file has, if they can be read as they lie in a mapped file.
  std::optional<ConstView> in_file(const ParameterEntry& entry) {
    open(file_.source->index_of(entry.name));
    if (bytes_.empty() || !copied_.empty() || !is_aligned()) return std::nullopt;
    return ConstView::of(reinterpret_cast<const float*>(bytes_.data()), entry.shape);
  }

 private:
  // Sources that have no mapped file copy a whole tensor at each call of bytes().
  void open(size_t index) {
    if (std::exchange(opened_, index) == index) return;
    copied_.clear();
    bytes_ = {};
    if (file_.source->entries()[index].dtype != DType::kF32) return;
    bytes_ = file_.source->bytes(index, copied_);
  }

  std::span<const std::byte> part_bytes(int64_t begin, size_t count) const {
    return bytes_.subspan(static_cast<size_t>(begin) * sizeof(float), count * sizeof(float));
  }

  bool is_aligned() const {
    return reinterpret_cast<uintptr_t>(bytes_.data()) % alignof(float) == 0;
  }

  // In the file itself if they are f32, and where an f32 may lie.
  std::span<const float> part(size_t index, int64_t begin, size_t count) {
    if (!bytes_.empty() && is_aligned()) {
      return {reinterpret_cast<const float*>(part_bytes(begin, count).data()), count};
    }
    staged_.resize(count);
    if (bytes_.empty()) {
      file_.source->read_f32(index, begin, staged_);
    } else {
      std::memcpy(staged_.data(), part_bytes(begin, count).data(), count * sizeof(float));
    }
    return staged_;
  }

  void warn_of_damage(const std::string& name, std::span<const float> values) {
    if (is_damaged_ || are_finite(values)) return;
    log_warning("{}: {} contains values that are not finite, so the results will be meaningless",
                file_.source->place(), name);
    is_damaged_ = true;
  }

  const MatchedFile& file_;
  std::optional<size_t> opened_;
  std::vector<float> staged_;
  std::span<const std::byte> bytes_;  // of the entry, if they are f32
  std::vector<std::byte> copied_;     // what they point into, unless that is the file
  bool is_damaged_ = false;
};

ConstView view_of(std::span<const float> values) {
  return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
}

// Reads a model's values in the form in which predictions read them: of a matrix that is only
// multiplied the packed copy, rounded to int8 or not, of a lookup table the compute copy, or in f32
// the file itself if it may be used, of others the values and their compute copy. Other memory of
// the table is not touched, so that it costs nothing.
class InferenceReader {
 public:
  InferenceReader(Context& context, ParameterTable& table, const MatchedFile& file, bool is_rounded,
                  FileUse file_use)
      : context_(context),
        table_(table),
        source_(file.source),
        is_rounded_(is_rounded),
        file_use_(file_use),
        reader_(file) {
    for (const ParameterEntry& entry : table.entries()) {
      has_decoder_ |= entry.name.starts_with(model::kMaskedWordHead);
    }
  }

  // `entries` are those of the parameter.
  void read(int parameter, std::span<const ParameterEntry> entries) {
    const Parameter& placed = table_.parameters()[static_cast<size_t>(parameter)];
    if (is_on_cpu() && placed.declaration.only_multiplied) return pack(parameter, entries);
    if (placed.declaration.lookup && place(parameter, entries)) return;
    if (placed.declaration.lookup && is_on_cpu()) {
      const View whole = table_.compute_values().rows(placed.range.begin, placed.range.end);
      memory::prepare(static_cast<std::byte*>(whole.raw()), whole.size_bytes(),
                      memory::Use::kWhole);
    }
    const bool keeps_values = !is_cast() || !is_on_cpu() || !placed.declaration.lookup;
    const Range padding = padding_of(placed, entries);
    if (keeps_values) zero(table_.values().rows(padding.begin, padding.end));
    if (is_cast()) zero(table_.compute_values().rows(padding.begin, padding.end));
    for (const ParameterEntry& entry : entries) {
      reader_.read(entry, kPartElements, [&](int64_t begin, std::span<const float> values) {
        const int64_t first = entry.offset_elements + begin;
        const int64_t end = first + static_cast<int64_t>(values.size());
        const View kept = keeps_values ? table_.values().rows(first, end) : View();
        if (keeps_values) copy(kept, view_of(values));
        if (!is_cast()) return;
        ops::cast(context_, {.from = keeps_values ? ConstView(kept) : view_of(values),
                             .to = table_.compute_values().rows(first, end)});
      });
    }
  }

 private:
  bool is_cast() const { return table_.compute_type() != DType::kF32; }
  bool is_on_cpu() const { return context_.device().is_cpu(); }

  // Leaves a table in the file. The head for masked words multiplies by the one of words, with its
  // padding rows, which no file has. False: the table is not such.
  bool place(int parameter, std::span<const ParameterEntry> entries) {
    if (file_use_ == FileUse::kToLoad || is_cast() || !is_on_cpu() || has_decoder_) return false;
    if (entries.size() != 1) return false;
    const std::optional<ConstView> values = reader_.in_file(entries[0]);
    if (!values) return false;
    reader_.read(entries[0], kPartElements, [](int64_t, std::span<const float>) {});  // its warning
    table_.place(parameter, *values, source_);
    return true;
  }

  static void zero(const View& view) {
    memory::fill_zero(view.device(), view.raw(), view.size_bytes());
  }
  // Elements that no entry has: padding rows.
  static Range padding_of(const Parameter& placed, std::span<const ParameterEntry> entries) {
    const ParameterEntry& last = entries.back();
    return {last.offset_elements + last.shape.elements(), placed.range.end};
  }

  void pack(int parameter, std::span<const ParameterEntry> entries) {
    const Parameter& placed = table_.parameters()[static_cast<size_t>(parameter)];
    const View weight = table_.compute_value(parameter);
    const Range padding = padding_of(placed, entries);
    if (!is_cast() && entries.size() == 1 && padding.begin == padding.end) {
      reader_.read(entries[0], weight.elements(), [&](int64_t, std::span<const float> values) {
        pack(weight, ConstView::of(values.data(), weight.shape()));
      });
      return;
    }
    const View staged = stage(weight);
    const auto place = [&](int64_t first, int64_t end) {
      return staged.reshaped({staged.elements()})
          .rows(first - placed.range.begin, end - placed.range.begin);
    };
    zero(place(padding.begin, padding.end));
    for (const ParameterEntry& entry : entries) {
      reader_.read(entry, kPartElements, [&](int64_t begin, std::span<const float> values) {
        const int64_t first = entry.offset_elements + begin;
        const View to = place(first, first + static_cast<int64_t>(values.size()));
        if (is_cast()) {
          ops::cast(context_, {.from = view_of(values), .to = to});
        } else {
          copy(to, view_of(values));
        }
      });
    }
    pack(weight, staged);
  }

  void pack(const View& weight, const ConstView& values) {
    const ops::PackConstantWeight call{.weight = weight, .values = values};
    if (is_rounded_ && ops::quantise_constant_weight(context_, call)) return;
    if (!ops::pack_constant_weight(context_, call)) copy(weight, values);
  }

  // Memory for one matrix after the other.
  View stage(const View& weight) {
    if (staged_.size_bytes() < weight.size_bytes()) staged_ = Buffer(Device{}, weight.size_bytes());
    return View(staged_.data(), weight.dtype(), weight.shape(), Device{});
  }

  Context& context_;
  ParameterTable& table_;
  std::shared_ptr<const formats::TensorSource> source_;
  bool is_rounded_, has_decoder_ = false;
  FileUse file_use_;
  ValueReader reader_;
  Buffer staged_;
};

}  // namespace

formats::MatchReport load_values(ParameterTable& table, const Path& model_folder,
                                 const formats::MatchRules& rules) {
  MatchedFile file = match_file(table, model_folder, rules);
  ValueReader reader(file);
  for (const ParameterEntry& entry : table.entries()) {
    reader.read(entry, kPartElements, [&](int64_t begin, std::span<const float> values) {
      const int64_t first = entry.offset_elements + begin;
      copy(table.values().rows(first, first + static_cast<int64_t>(values.size())),
           view_of(values));
    });
  }
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
                                   const formats::MatchRules& rules, FileUse file_use) {
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
  InferenceReader reader(context, table, file, rounded, file_use);
  std::span<const ParameterEntry> rest = table.entries();
  for (int parameter = 0; !rest.empty(); ++parameter) {
    const auto end = std::find_if(rest.begin(), rest.end(), [&](const ParameterEntry& entry) {
      return entry.parameter != parameter;
    });
    const auto count = static_cast<size_t>(end - rest.begin());
    reader.read(parameter, rest.first(count));
    rest = rest.subspan(count);
  }
  return weights;
}

}  // namespace onebit::training
