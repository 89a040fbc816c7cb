#include "onebit/data/formats/optimizer_variables.h"

#include <algorithm>
#include <iterator>

namespace onebit::formats {
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
