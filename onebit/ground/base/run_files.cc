#include "onebit/ground/base/run_files.h"

#include <algorithm>

#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::run_files {

bool is_of_start(std::string_view name) {
  constexpr std::string_view kNames[] = {kRecipe, kResolvedRecipe, kTensorBoard, kLogs, kLockName};
  return std::ranges::find(kNames, name) != std::end(kNames) || name.ends_with(kPartialSuffix) ||
         name.starts_with(kDiskToken);
}

bool is_of_run(std::string_view name) {
  constexpr std::string_view kNames[] = {kRecipe,     kResolvedRecipe, kMetrics, kLatest,
                                         kEvaluation, kScores,         kState,   kLockName};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace onebit::run_files
