// The names of what lies in the folder of a run and of its checkpoints: training writes it, the
// launcher, the report and the commands look for it.
#pragma once

#include <string_view>

namespace onebit::run_files {

// In the folder of a run, beside its lock (folder_lock.h).
inline constexpr const char* kRecipe = "recipe.json";  // as given
inline constexpr const char* kResolvedRecipe = "recipe.resolved.json";
inline constexpr const char* kMetrics = "metrics.jsonl";       // metrics/log_line.h
inline constexpr const char* kTensorBoard = "tensorboard";     // a folder
inline constexpr const char* kLatest = "latest";               // names the newest checkpoint
inline constexpr const char* kEvaluation = "evaluation.json";  // of the model that is kept here
inline constexpr const char* kScores = "scores.json";          // of the same on a task's dev data
inline constexpr const char* kReport = "report.html";
inline constexpr const char* kProfile = "profile";        // a folder
inline constexpr const char* kLogs = "logs";              // a folder, of onebit launch
inline constexpr std::string_view kAttempt = "attempt-";  // followed by a number: folders in kLogs

// The beginning of names of files by which ranks find out who sees the same disk.
inline constexpr std::string_view kDiskToken = ".disk-";

// Folders of what is not in its place yet; a run that was ended may leave them behind. The best
// model as it is written, in a run's folder.
inline constexpr const char* kNextModel = "next-model";
// What arrives from another disk: in a run's, or in a checkpoint's.
inline constexpr const char* kIncoming = "incoming";

// In the folder of a checkpoint.
inline constexpr const char* kState = "state.json";
inline constexpr const char* kModel = "model";  // a folder

// Whether a run that ended before its first step may have left this in its folder.
bool is_of_start(std::string_view name);
// Whether a file of this name is a run's or a checkpoint's, and no result of another command.
bool is_of_run(std::string_view name);

}  // namespace onebit::run_files
