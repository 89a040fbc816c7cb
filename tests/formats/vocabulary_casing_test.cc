#include "onebit/formats/vocabulary_casing.h"

#include <gtest/gtest.h>

namespace onebit::formats {
namespace {

TEST(VocabularyCasing, CapitalsShowIt) {
  EXPECT_EQ(casing_of({"[CLS]", "[unused1]", "the", "##s"}), CasingEvidence::kUncased);
  EXPECT_EQ(casing_of({"[CLS]", "the", "The", "##S"}), CasingEvidence::kCased);
  EXPECT_EQ(casing_of({"[CLS]", "[MASK]", "1", "!", "\xe4\xb8\xad"}), CasingEvidence::kUnclear);
  std::vector<std::string> mostly(200, "word");
  mostly.emplace_back("I");
  EXPECT_EQ(casing_of(mostly), CasingEvidence::kUnclear);
  mostly.emplace_back("A");
  mostly.emplace_back("B");
  EXPECT_EQ(casing_of(mostly), CasingEvidence::kCased);
}

}  // namespace
}  // namespace onebit::formats
