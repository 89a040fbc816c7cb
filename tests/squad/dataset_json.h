// Small SQuAD files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/json.h"

namespace onebit::squad::dataset_json {

// Answers are (text, answer_start).
inline Json question(const std::string& id,
                     const std::vector<std::pair<std::string, int64_t>>& answers,
                     const std::string& text = "What is it?") {
  Json list = Json::array();
  for (const auto& [answer, start] : answers) {
    list.push_back({{"text", answer}, {"answer_start", start}});
  }
  return {{"id", id}, {"question", text}, {"answers", list}};
}

// One article of one paragraph.
inline Json file_of(const std::string& context, const std::vector<Json>& questions) {
  Json paragraph = {{"context", context}, {"qas", questions}};
  Json article = {{"title", "test"}, {"paragraphs", Json::array({paragraph})}};
  return {{"version", "1.1"}, {"data", Json::array({article})}};
}

}  // namespace onebit::squad::dataset_json
