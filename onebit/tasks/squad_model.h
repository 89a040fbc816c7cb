// What the question-answering model takes and leaves of a checkpoint.
#pragma once

#include <string>
#include <vector>

namespace onebit::tasks {

inline constexpr const char* kSquadArchitecture = "BertForQuestionAnswering";
inline constexpr const char* kSquadHead = "qa_outputs.";
// Other tasks' heads, and the pooler, which answers do not use.
inline const std::vector<std::string> kNotForSquad = {"cls.", "classifier.", "bert.pooler."};

}  // namespace onebit::tasks
