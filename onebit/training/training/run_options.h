// The options of every training task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "onebit/ground/base/file.h"
#include "onebit/ground/recipe/recipe.h"

namespace onebit::training {

// The task of a recipe without the key "task".
inline constexpr std::string_view kDefaultTask = "pretrain";

// A profile of the run (run_profile.h).
struct ProfileRequest {
  int64_t first_traced_step = 0;  // number in the run; 0: soon after the first one of this process
};

struct RunOptions {
  Recipe recipe;
  Path output;          // the folder of the run
  bool resume = false;  // continue from a checkpoint in `output`
  std::string tag;      // of this checkpoint; empty: the one that `latest` names
  bool quiet = false;   // no tables
  std::optional<ProfileRequest> profile = std::nullopt;
};

}  // namespace onebit::training
