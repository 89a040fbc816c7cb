#include "onebit/data/formats/plain_names.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

namespace {

// Modules that wrap single layers, so that their names are inside the names of tensors.
constexpr std::string_view kWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                          "_checkpoint_wrapped_module."};
// TensorFlow 2 adds it to the names of a graph of objects.
constexpr std::string_view kAttribute = "/.ATTRIBUTES/VARIABLE_VALUE";

// Relatives of BERT whose tensors have BERT's names and another meaning. onebit knows some of them
// by their config.json.
constexpr std::string_view kOtherModels[] = {"albert",   "bert",       "camembert", "convbert",
                                             "deberta",  "distilbert", "electra",   "ernie",
                                             "flaubert", "gte",        "layoutlm",  "mobilebert",
                                             "mpnet",    "nomic_bert", "roberta",   "xlm_roberta"};

constexpr size_t kMaxShown = 3;

// How a naming spells the parts of names.
struct Spelling {
  std::string_view encoder, word_embeddings;
  std::span<const std::string_view> parts;  // of an encoder, without its prefix
};
constexpr std::string_view kTensorFlowParts[] = {"embeddings/", "encoder/", "pooler/"};
constexpr Spelling kTensorFlow = {"bert/", "embeddings/word_embeddings", kTensorFlowParts};

// Whether `name` ends with `ending`, which begins a part of the name.
bool ends_with_part(std::string_view name, std::string_view ending, char separator) {
  if (!name.ends_with(ending)) return false;
  return name.size() == ending.size() || name[name.size() - ending.size() - 1] == separator;
}

void erase_wrappers(std::string& name) {
  for (const std::string_view wrapper : kWrappers) {
    for (size_t at = 0; (at = name.find(wrapper, at)) != std::string::npos;) {
      if (at == 0 || name[at - 1] == '.') {
        name.erase(at, wrapper.size());
      } else {
        at += wrapper.size();
      }
    }
  }
}

// What precedes "bert." of each encoder in the file, or "embeddings." where that has no "bert.".
std::set<std::string> prefixes_of(const std::vector<std::string>& names, const Spelling& spelling) {
  const char separator = spelling.encoder.back();
  std::set<std::string> prefixes;
  for (const std::string& name : names) {
    if (!ends_with_part(name, spelling.word_embeddings, separator)) continue;
    std::string_view before(name.data(), name.size() - spelling.word_embeddings.size());
    if (ends_with_part(before, spelling.encoder, separator)) {
      before.remove_suffix(spelling.encoder.size());
    }
    prefixes.emplace(before);
  }
  return prefixes;
}

void refuse_other_model(const std::string& prefix, const std::string& place, const Family& family) {
  if (prefix.empty()) return;
  std::string_view last(prefix.data(), prefix.size() - 1);
  last.remove_prefix(std::min(last.size(), last.find_last_of("./") + 1));
  const bool is_known =
      std::find(std::begin(kOtherModels), std::end(kOtherModels), last) != std::end(kOtherModels);
  const bool is_other = is_known && fmt::format("{}.", last) != family.tensor_prefix;
  require(
      !is_other,
      "{}: its names begin with {}: this is another kind of model than {}, which its config.json "
      "names (without the file, it is BERT)",
      place, quote(prefix), family.title);
}

std::string choose_prefix(const std::set<std::string>& prefixes, const std::string& place,
                          const Family& family) {
  if (prefixes.empty() || prefixes.contains("")) return "";
  std::vector<std::string> quoted;
  for (const std::string& prefix : prefixes) {
    if (quoted.size() < kMaxShown) quoted.push_back(quote(prefix));
  }
  require(prefixes.size() == 1,
          "{}: contains {} encoders, whose names begin with {}{}: leave out all but one (onebit "
          "convert --drop PREFIX)",
          place, prefixes.size(), fmt::join(quoted, ", "),
          prefixes.size() > kMaxShown ? ", ..." : "");
  refuse_other_model(*prefixes.begin(), place, family);
  return *prefixes.begin();
}

}  // namespace

std::string PlainNames::report() const {
  if (prefix.empty()) return "";
  return fmt::format("the prefix {} was removed from {}", quote(prefix),
                     prefixed == names.size()
                         ? "all names"
                         : fmt::format("{} of {} names", prefixed, names.size()));
}

PlainNames plain_names(std::span<const TensorEntry> entries, Naming naming,
                       const std::string& place, const Family& family) {
  const bool google = naming == Naming::kGoogle;
  const Spelling torch = {family.tensor_prefix, family.word_embeddings, family.parts};
  const Spelling& spelling = google ? kTensorFlow : torch;
  PlainNames plain;
  for (const TensorEntry& entry : entries) {
    std::string name = entry.name;
    if (google) {
      if (name.ends_with(kAttribute)) name.resize(name.size() - kAttribute.size());
    } else {
      erase_wrappers(name);
      if (!family.other_prefix.empty() && name.starts_with(family.other_prefix)) {
        name.replace(0, family.other_prefix.size(), family.tensor_prefix);
      }
    }
    plain.names.push_back(std::move(name));
  }
  plain.prefix = choose_prefix(prefixes_of(plain.names, spelling), place, family);
  const std::string_view ours = google ? kTensorFlow.encoder : bert_family().tensor_prefix;
  for (std::string& name : plain.names) {
    if (!name.starts_with(plain.prefix)) continue;
    ++plain.prefixed;
    name.erase(0, plain.prefix.size());
    const bool is_bare = std::any_of(spelling.parts.begin(), spelling.parts.end(),
                                     [&](std::string_view part) { return name.starts_with(part); });
    if (is_bare) {
      name.insert(0, ours);
    } else if (name.starts_with(spelling.encoder)) {
      name.replace(0, spelling.encoder.size(), ours);
    }
  }
  return plain;
}

std::string some_names(std::span<const TensorEntry> entries) {
  std::vector<std::string> shown;
  std::set<size_t> taken;
  for (const std::string_view part : {"word_embeddings", "embeddings", ""}) {
    for (size_t i = 0; i < entries.size() && shown.size() < kMaxShown; ++i) {
      if (entries[i].name.find(part) == std::string::npos || !taken.insert(i).second) continue;
      shown.push_back(quote(entries[i].name));
    }
  }
  return shown.empty() ? "none" : fmt::format("{}", fmt::join(shown, ", "));
}

namespace {

constexpr const char* kOfOptimizer = "a variable of the optimizer";
constexpr const char* kOfProgram = "a variable of the training program";

// Variables without a model's variable. TensorFlow numbers the second of a name: "beta1_power_1".
constexpr std::string_view kOptimizerNames[] = {"beta1_power", "beta2_power", "good_steps",
                                                "learning_rate", "current_loss_scale"};
constexpr std::string_view kProgramNames[] = {"global_step", "signature", "save_counter",
                                              "_CHECKPOINTABLE_OBJECT_GRAPH"};
constexpr std::string_view kSlotEndings[] = {"/adam_m", "/adam_v", "/lamb_m", "/lamb_v"};
// TensorFlow 2: VARIABLE/.OPTIMIZER_SLOT/OPTIMIZER/SLOT, and the optimizer's own variables.
constexpr std::string_view kObjectSlot = "/.OPTIMIZER_SLOT/";
constexpr std::string_view kObjectOptimizer = "optimizer/";
constexpr std::string_view kAverage = "/ExponentialMovingAverage";

// Longer names are not searched: an index can encode many of them in a few bytes.
constexpr size_t kMaxSearched = 512;

// "name" or "name_1".
bool is_one_of(std::string_view name, std::span<const std::string_view> known) {
  return std::any_of(known.begin(), known.end(), [&](std::string_view one) {
    if (!name.starts_with(one)) return false;
    const std::string_view rest = name.substr(one.size());
    return rest.empty() || (rest.size() > 1 && rest[0] == '_' &&
                            std::all_of(rest.begin() + 1, rest.end(),
                                        [](char digit) { return digit >= '0' && digit <= '9'; }));
  });
}

}  // namespace

OptimizerVariables::OptimizerVariables(std::span<const TensorEntry> entries,
                                       const std::vector<std::string>& names)
    : entries_(entries), names_(names) {
  index_.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) index_.emplace(names[i], i);
}

bool OptimizerVariables::is_slot(size_t index) const {
  const std::string_view name = names_[index];
  const size_t last = name.rfind('/');
  if (last == std::string_view::npos || name.size() > kMaxSearched) return false;
  for (std::string_view variable = name.substr(0, last);;) {
    const auto found = index_.find(variable);
    if (found != index_.end()) {
      const Shape &own = entries_[index].shape, &of = entries_[found->second].shape;
      if (own == of || own.rank() < of.rank()) return true;
    }
    const size_t next = variable.find('/');
    if (next == std::string_view::npos) return false;
    variable.remove_prefix(next + 1);
  }
}

std::optional<std::string> OptimizerVariables::reason(size_t index) const {
  const std::string_view name = names_[index];
  if (is_one_of(name, kProgramNames)) return kOfProgram;
  const bool ends_as_slot =
      std::any_of(std::begin(kSlotEndings), std::end(kSlotEndings),
                  [&](std::string_view ending) { return name.ends_with(ending); });
  if (is_one_of(name, kOptimizerNames) || name.starts_with("loss_scale") || ends_as_slot ||
      name.find(kObjectSlot) != std::string_view::npos || name.starts_with(kObjectOptimizer)) {
    return kOfOptimizer;
  }
  if (!is_slot(index)) return std::nullopt;
  return name.ends_with(kAverage) ? "an average of a variable over the training" : kOfOptimizer;
}

}  // namespace onebit::formats
