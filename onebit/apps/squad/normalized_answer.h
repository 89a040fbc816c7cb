// An answer in the form in which SQuAD's official scoring compares it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onebit::squad {

// Lower-cases (all of Unicode, with its final sigma), deletes the 32 punctuation characters of
// ASCII, replaces the whole words a, an and the by spaces (words of any script, as Python's \b
// delimits them), and replaces white space by single spaces.
std::string normalized_answer(std::string_view utf8);

// Its words.
std::vector<std::string> answer_words(std::string_view utf8);

}  // namespace onebit::squad
