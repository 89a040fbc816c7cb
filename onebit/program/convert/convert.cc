#include "onebit/program/convert/convert.h"

#include <algorithm>
#include <map>
#include <set>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/sentence_files.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/partial_file.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/program/convert/convert_config.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::convert {
namespace {

namespace files = std::filesystem;
using formats::NamePlan;

// "f32", or "197 f32, 2 f16" where types are mixed.
std::string describe_types(const formats::TensorSource& source) {
  std::map<std::string_view, int> counts;
  for (const auto& entry : source.entries()) ++counts[onebit::name_of(entry.dtype)];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    parts.push_back(counts.size() == 1 ? std::string(name) : fmt::format("{} {}", count, name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Groups tensors by reason: reasons are few, tensors may be hundreds.
void report_skipped(const std::vector<NamePlan::Skipped>& skipped,
                    std::vector<std::string>& lines) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [name, reason] : skipped) by_reason[reason].push_back(name);
  for (const auto& [reason, names] : by_reason) {
    lines.push_back(names.size() == 1 ? fmt::format("left out: {} ({})", names[0], reason)
                                      : fmt::format("left out: {} tensors, as {} ({})",
                                                    names.size(), names[0], reason));
  }
}

// Leaves out the tensors whose names in the file begin with one of the prefixes, before the naming
// is looked for: a file may contain several encoders. Returns the prefixes of no name.
std::vector<std::string> drop_from_file(std::shared_ptr<const formats::TensorSource>& tensors,
                                        const std::vector<std::string>& prefixes,
                                        std::vector<NamePlan::Skipped>& skipped) {
  std::vector<std::string> unused;
  for (const std::string& prefix : prefixes) {
    NamePlan plan = formats::plan_without(tensors->entries(), prefix);
    if (plan.skipped.empty()) {
      unused.push_back(prefix);
      continue;
    }
    skipped.insert(skipped.end(), plan.skipped.begin(), plan.skipped.end());
    tensors = std::make_shared<formats::RenamedSource>(std::move(tensors), std::move(plan));
  }
  return unused;
}

// Does the same with onebit's names. Error: a prefix of no name.
void drop_tensors(NamePlan& plan, const std::vector<std::string>& prefixes,
                  const std::string& place) {
  for (const std::string& prefix : prefixes) {
    const auto is_dropped = [&](const formats::MapStep& step) {
      return step.target.name.starts_with(prefix);
    };
    require(std::any_of(plan.steps.begin(), plan.steps.end(), is_dropped),
            "{}: --drop {}: no tensor name begins with it", place, prefix);
    for (const auto& step : plan.steps) {
      if (is_dropped(step)) plan.skipped.push_back({step.target.name, "as requested by --drop"});
    }
    std::erase_if(plan.steps, is_dropped);
  }
}

std::vector<formats::TensorEntry> targets_of(const NamePlan& plan) {
  std::vector<formats::TensorEntry> entries;
  for (const auto& step : plan.steps) entries.push_back(step.target);
  return entries;
}

// Adds the facts about the heads that follow from the tensors to the config.
void adopt_heads(formats::EncoderConfigFile& config, const TaskHeads& heads,
                 const std::string& place) {
  config.architecture = heads.architecture;
  if (heads.classes == 0) return;
  const auto classes = static_cast<size_t>(heads.classes);
  if (config.labels.empty() && classes != 2) {
    for (size_t id = 0; id < classes; ++id) config.labels.push_back(default_label(id));
  }
  require(config.labels.empty() || config.labels.size() == classes,
          "{}: the classifier has {} classes, id2label of its config has {}", place, classes,
          config.labels.size());
}

class Conversion {
 public:
  explicit Conversion(const ConvertOptions& options) : options_(options) {}

  std::vector<std::string> run() {
    PartialFolder output(options_.output, Existing::kRefuse);
    open();
    formats::HuggingFaceFolder model = describe_model(options_, source_, lines_);
    formats::cut_vocabulary(plan_, model.config.vocab_size);
    auto tensors = std::make_shared<formats::RenamedSource>(opened_.tensors, std::move(plan_));
    match(model.config, *tensors);
    report_skipped(tensors->skipped(), lines_);
    model.config.torch_dtype = written_type(*tensors);
    write(output, model, std::move(tensors));
    return std::move(lines_);
  }

 private:
  void open() {
    const Path input = files::is_directory(options_.input) && !options_.from
                           ? training::model_folder_in(options_.input).value_or(options_.input)
                           : options_.input;
    opened_ = formats::open_checkpoint(input, options_.from);
    source_.place = opened_.tensors->place();
    const auto found = fmt::format("{} tensors ({})", opened_.tensors->entries().size(),
                                   describe_types(*opened_.tensors));
    std::vector<NamePlan::Skipped> dropped;
    const auto to_drop = drop_from_file(opened_.tensors, options_.drop, dropped);
    const auto& entries = opened_.tensors->entries();
    source_.folders = {opened_.folder};
    if (opened_.kind == formats::CheckpointKind::kDeepSpeed) {
      source_.folders.push_back(opened_.folder / "..");
    }
    source_.names = names_of_source(options_, source_.folders);
    source_.naming = formats::detect_naming(entries, source_.place, *source_.names.family);
    plan_ = formats::plan_to_ours(entries, source_.naming, source_.place, source_.names);
    plan_.skipped.insert(plan_.skipped.end(), dropped.begin(), dropped.end());
    drop_tensors(plan_, to_drop, source_.place);
    source_.ours = targets_of(plan_);
    source_.shape = shape_of(source_.ours);
    const formats::Family& family = *source_.names.family;
    lines_.push_back(fmt::format("{}: {}, {}, names of {}, layer norms {} sublayers", source_.place,
                                 formats::name_of(opened_.kind), found,
                                 family.is_bert() ? formats::name_of(source_.naming) : family.title,
                                 source_.shape.pre_layer_norm ? "before" : "after"));
    if (!plan_.prefix_report.empty()) lines_.push_back("names: " + plan_.prefix_report);
    for (const formats::CheckpointFile& other : opened_.others) {
      lines_.push_back(
          fmt::format("not read: {} ({})", other.path.string(),
                      other.kind == opened_.kind ? "name the file to read it" : "--from chooses"));
    }
  }

  formats::EncoderShape shape_of(const std::vector<formats::TensorEntry>& ours) const {
    const formats::Family& family = *source_.names.family;
    if (family.is_bert()) return formats::encoder_shape_of(ours, source_.place);
    return {.word_rows = formats::word_rows_of(ours, source_.place),
            .pre_layer_norm = family.choices.norm_before};
  }

  void match(formats::EncoderConfigFile& config, const formats::RenamedSource& tensors) {
    const TaskHeads heads = find_heads(tensors.entries(), config.architecture);
    const auto wanted = all_tensors(config, heads);
    formats::require_match(tensors, wanted, {.may_lack = heads.lacking, .may_ignore = {}});
    adopt_heads(config, heads, source_.place);
    if (!heads.lacking.empty()) {
      lines_.push_back(fmt::format("absent; a task that needs them initializes them at random: {}",
                                   fmt::join(heads.lacking, ", ")));
    }
  }

  // The type for config.json: the type of all tensors, f32 if they are mixed.
  DType written_type(const formats::TensorSource& tensors) const {
    if (options_.dtype) return *options_.dtype;
    std::set<DType> types;
    for (const auto& entry : tensors.entries()) types.insert(entry.dtype);
    const bool is_half = types.size() == 1 && *types.begin() != DType::kF64;
    return is_half ? *types.begin() : DType::kF32;
  }

  void write(PartialFolder& output, const formats::HuggingFaceFolder& model,
             std::shared_ptr<const formats::TensorSource> tensors) {
    if (options_.naming != formats::Naming::kHuggingFace) {
      NamePlan plan = formats::plan_from_ours(tensors->entries(), options_.naming, source_.place,
                                              source_.names);
      tensors = std::make_shared<formats::RenamedSource>(std::move(tensors), std::move(plan));
    }
    formats::write_hugging_face_folder(output.path(), model, tensors, options_.dtype);
    const auto bytes = files::file_size(output.path() / formats::kTensors);
    take_sentence_files(output.path(), model.config.hidden_size);
    output.finish("config.json");
    lines_.push_back(
        fmt::format("{}: {}, {} tensors, {}{}", options_.output.string(), model.config.architecture,
                    tensors->entries().size(), metrics::human_bytes(static_cast<double>(bytes)),
                    options_.naming == formats::Naming::kHuggingFace
                        ? ""
                        : fmt::format(", names of {}", formats::name_of(options_.naming))));
  }

  // The computation of sentence vectors is specified in files that do not depend on the tensors.
  void take_sentence_files(const Path& output, int64_t hidden) {
    std::optional<formats::SentenceFiles> sentence;
    try {
      sentence = formats::read_sentence_files(opened_.folder);
    } catch (const Error& error) {
      lines_.push_back(
          fmt::format("left out: the files of sentence-transformers ({})", error.what()));
    }
    if (!sentence) return;
    formats::write_sentence_files(output, *sentence, hidden);
    lines_.emplace_back("the files of sentence-transformers were copied as well");
  }

  const ConvertOptions& options_;
  formats::OpenedCheckpoint opened_;
  ConvertSource source_;
  NamePlan plan_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> convert(const ConvertOptions& options) {
  return Conversion(options).run();
}

}  // namespace onebit::convert
