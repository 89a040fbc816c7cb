// Whether a model distinguishes upper from lower case, and how its vocabulary indicates this.
#pragma once

namespace onebit::text {

class Vocabulary;

enum class Casing {
  kUncased,     // lower-cases and strips accents
  kCased,       // keeps words as they are written
  kLowerCased,  // lower-cases and keeps accents, as the uncased German BERT does
};

inline constexpr Casing kCasings[] = {Casing::kUncased, Casing::kCased, Casing::kLowerCased};

// "uncased", "cased", "lower-cased".
const char* name_of(Casing casing);

enum class CasingEvidence {
  kCased,    // at least one word in a hundred has a capital: text was not lower-cased
  kUncased,  // there are words in Latin letters, and none has a capital
  kUnclear,
};

// Considers ASCII letters. Tokens in brackets ("[CLS]", "[unused1]") do not count.
CasingEvidence casing_of(const Vocabulary& vocabulary);

}  // namespace onebit::text
