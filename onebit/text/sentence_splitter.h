// Prose to sentences: the rules of Unicode Standard Annex 29 (section 5, as ICU's break iterator
// has them) over ICU's character properties, and a list of abbreviations (abbreviations.h). Unlike
// there, ! and ? end no sentence that continues in lower case (“Did it?” he asked.). The rules are
// written out because ICU's iterator reads UTF-8 at a tenth of this speed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace onebit::text {

// Each thread needs its own.
class SentenceSplitter {
 public:
  // `locale` as ICU names it ("en", "de"); an unknown one is an error.
  explicit SentenceSplitter(const std::string& locale = "en");
  ~SentenceSplitter();
  SentenceSplitter(SentenceSplitter&&) noexcept;
  SentenceSplitter& operator=(SentenceSplitter&&) noexcept;

  // The sentences of one paragraph in order, without surrounding white space, none empty. They are
  // views into `paragraph`, which is UTF-8, and last until the next call. Line breaks inside it are
  // white space, not ends.
  std::span<const std::string_view> split(std::string_view paragraph);

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace onebit::text
