// What a run wrote into metrics.jsonl.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/base/json.h"

namespace onebit::tasks {

// Loss of every step.
inline std::vector<double> losses_in(const Path& run) {
  std::vector<double> found;
  const std::string text = read_file(run / "metrics.jsonl");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const Json line = Json::parse(text.substr(begin, end - begin));
    if (line.contains("loss")) found.push_back(line.at("loss").get<double>());
    begin = end + 1;
  }
  return found;
}

}  // namespace onebit::tasks
