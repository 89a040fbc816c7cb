// Writes metrics.jsonl: one JSON object per line, each with the integer key "step" (log_line.h).
#pragma once

#include <cstdint>
#include <memory>

#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/metrics/append_file.h"

namespace onebit::metrics {

// "last_step" for a new run: keeps no line.
inline constexpr int64_t kNoStep = -1;
// The ending of the copy of a file that had unreadable lines.
inline constexpr const char* kDamagedSuffix = ".damaged";

// The number of update lines up to step `last_step`, or 0 if there is no file. Reads only the
// beginnings of lines.
int64_t count_steps(const Path& path, int64_t last_step);

class JsonLinesWriter {
 public:
  // Continues the file of a run after step `last_step`: lines of later steps, and a last line cut
  // short by a kill, are dropped atomically. Lines that are not objects with a step are dropped
  // with a warning and a copy of the file, with kDamagedSuffix. Error: cannot write.
  JsonLinesWriter(const Path& path, int64_t last_step);

  // Appends the object, which has reached the operating system on return. A value that is not
  // finite becomes null, since JSON cannot represent it.
  void write(const Json& object);

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace onebit::metrics
