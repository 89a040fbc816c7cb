// Abbreviations whose full stop ends no sentence.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace onebit::text {

class Abbreviations {
 public:
  // The list that ICU carries for the locale (CLDR suppressions), for English mended: titles it
  // lacks are added and everyday words that it holds ("By.", "Up.") taken out. Locales without a
  // list have no abbreviations.
  explicit Abbreviations(const std::string& locale);

  // Whether text[0, end), which ends with a full stop, ends with an abbreviation that is a whole
  // word.
  bool end_of(std::string_view text) const;
  size_t size() const { return words_.size(); }

 private:
  std::unordered_set<std::string> words_;
  size_t longest_bytes_ = 0;
};

}  // namespace onebit::text
