// The names of files and folders of a run and of its checkpoints, which training writes and the
// launcher, the report and the commands read.
#pragma once

#include <string_view>

namespace onebit::run_files {

// Files in the folder of a run, beside its lock (folder.h).
inline constexpr const char* kRecipe = "recipe.json";  // as given by the user
inline constexpr const char* kResolvedRecipe = "recipe.resolved.json";
inline constexpr const char* kMetrics = "metrics.jsonl";       // metrics/log_line.h
inline constexpr const char* kTensorBoard = "tensorboard";     // a folder
inline constexpr const char* kLatest = "latest";               // names the newest checkpoint
inline constexpr const char* kEvaluation = "evaluation.json";  // of the model that is kept here
inline constexpr const char* kScores = "scores.json";          // of the same on a task's dev data
inline constexpr const char* kReport = "report.html";
inline constexpr const char* kProfile = "profile";        // a folder
inline constexpr const char* kLogs = "logs";              // a folder, written by onebit launch
inline constexpr std::string_view kAttempt = "attempt-";  // followed by a number: folders in kLogs

// The prefix of files by which ranks detect a shared disk.
inline constexpr std::string_view kDiskToken = ".disk-";

// Folders of incomplete results, which a killed run may leave behind. In a run's folder it is the
// best model while it is written.
inline constexpr const char* kNextModel = "next-model";
// In the folder of a run or of a checkpoint: files that arrive from another disk.
inline constexpr const char* kIncoming = "incoming";

// Files in the folder of a checkpoint.
inline constexpr const char* kState = "state.json";
inline constexpr const char* kModel = "model";  // a folder

// Whether a run that ended before its first step may leave this name in its folder.
bool is_of_start(std::string_view name);
// Whether a file of this name belongs to a run or a checkpoint and to no other command.
bool is_of_run(std::string_view name);

}  // namespace onebit::run_files
