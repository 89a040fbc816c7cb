#include "onebit/optim/optimizer_list.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "onebit/optim/adam.h"
#include "onebit/optim/lamb.h"
#include "onebit/optim/onebit_adam.h"

namespace onebit::optim {
namespace {

struct OptimizerEntry {
  const char* name;  // the recipe's optimizer.type, in any case
  // Reads optimizer.params; keys that it does not ask for are errors.
  std::shared_ptr<const OptimizerRecipe> (*read)(JsonReader& params);
};

constexpr OptimizerEntry kOptimizers[] = {
    {"Adam", read_adam},
    {"AdamW", read_adam},
    {"Lamb", read_lamb},
    {"FusedLamb", read_lamb},
    {"OneBitAdam", read_onebit_adam},
};

// DeepSpeed's others are no slips of the pen, and are not suggested.
constexpr const char* kOnlyInDeepSpeed[] = {"OneBitLamb", "ZeroOneAdam"};

bool equal_in_any_case(std::string_view left, std::string_view right) {
  const auto lower = [](char one) { return std::tolower(static_cast<unsigned char>(one)); };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char one, char other) { return lower(one) == lower(other); });
}

const OptimizerEntry& read_type(JsonReader& section) {
  const std::string given = section.text("type", "");
  std::vector<std::string> names;
  for (const OptimizerEntry& entry : kOptimizers) {
    if (equal_in_any_case(given, entry.name)) return entry;
    names.emplace_back(entry.name);
  }
  require(!given.empty(), "{} is missing; known optimizers: {}", section.place("type"),
          fmt::join(names, ", "));
  for (const char* name : kOnlyInDeepSpeed) {
    require(!equal_in_any_case(given, name),
            "{} is \"{}\", which onebit does not have yet; use OneBitAdam for compressed exchange, "
            "AdamW or Lamb without",
            section.place("type"), given);
  }
  const std::string near = nearest_word(given, names);
  fail("{} is \"{}\"; it must be one of {}{}", section.place("type"), given, fmt::join(names, ", "),
       near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near));
}

}  // namespace

std::shared_ptr<const OptimizerRecipe> read_optimizer(JsonReader section) {
  const OptimizerEntry& entry = read_type(section);
  JsonReader params = section.object("params");
  section.accept("legacy_fusion");
  section.finish();
  std::shared_ptr<const OptimizerRecipe> recipe = entry.read(params);
  params.finish();
  return recipe;
}

}  // namespace onebit::optim
