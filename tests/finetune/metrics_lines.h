// Reads a run's metrics.jsonl.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"

namespace onebit::finetune {

inline std::vector<Json> lines_in(const Path& run) {
  std::vector<Json> lines;
  const std::string text = read_file(run / "metrics.jsonl");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(Json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

// The loss of every step.
inline std::vector<double> losses_in(const Path& run) {
  std::vector<double> found;
  for (const Json& line : lines_in(run)) {
    if (line.at("kind") == "step") found.push_back(line.at("loss").get<double>());
  }
  return found;
}

}  // namespace onebit::finetune
