// The data in a run's folder in the form that its report needs: every number of metrics.jsonl by
// step, the phases, the tables of its start and end, and its recipe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::metrics {

struct Point {
  double step = 0, value = 0;
};
using Series = std::vector<Point>;

struct PhaseSpan {
  std::string name;  // "dense", "warmup", "compressed", "uncompressed"
  int64_t first_step = 0, last_step = 0;
};

// A table as the run printed it.
struct RunTable {
  int64_t step = 0;
  std::string time;  // UTC, ISO 8601
  std::vector<std::pair<std::string, std::string>> rows;
};

// How a run chooses the model that it keeps in its folder.
struct KeptBest {
  std::string metric;  // its name in evaluations
  bool smaller_is_better = false;
};

struct RunHistory {
  std::string name;  // the last part of the folder's path
  std::string folder;
  // Series of training steps, by their names in metrics/log_line.h: "loss", "learning_rate",
  // "seconds.step", and the task's own: "metrics.mlm_loss", ...
  std::map<std::string, Series> training;
  // Series of evaluations, without counts: "held_out.mlm_loss", ...
  std::map<std::string, Series> evaluations;
  std::vector<PhaseSpan> phases;
  // One of each per training process: more than one start means that the run was resumed.
  std::vector<RunTable> starts, ends;
  // Seconds per step as expected at the last start, or 0 if they are not known.
  double expected_dense_seconds = 0, expected_compressed_seconds = 0;
  std::optional<KeptBest> kept_best;  // absent: the run has checkpoints only
  int64_t last_step = 0;
  std::optional<int64_t> wanted_steps;  // run.steps of the recipe
  std::string recipe;                   // as given, maybe ""
  // Lines of metrics.jsonl that could not be read, with their numbers and the reason.
  std::vector<std::string> damage;
};

// Reads `folder`. A line that cannot be read is recorded as damage and left out. Errors: no folder,
// or no metrics.jsonl in it.
RunHistory read_run(const Path& folder);

// The held-out set in the key of an evaluation: "books" for "held_out.books.mlm_loss", empty for
// "held_out.mlm_loss", which is the first set.
std::string data_of(const std::string& key);

// The key of a name in an object: "seconds.step".
std::string nested(const std::string& object, const std::string& name);

// The series under `key`, or null.
const Series* find(const std::map<std::string, Series>& among, const std::string& key);

}  // namespace onebit::metrics
