#include "onebit/apps/squad/answer_decoder.h"

#include <gtest/gtest.h>

#include <tuple>

namespace onebit::squad {
namespace {

TEST(AnswerProjection, FindsTheOriginalText) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"steve smith", "Steve Smith's", "Steve Smith"},
      {"1895", "(1895-1943).", "1895"},
      {"cafe", "Caf\u00e9.", "Caf\u00e9"},
      {"don ' t", "don't", "don't"},
      {"u . s .", "U.S.", "U.S."},
      {"5", "$5.00", "5"},
      {"xyz", "abc", "abc"},
      {"istanbul", "\u0130stanbul", "\u0130stanbul"},
      {"", "abc", "abc"}};
  for (const auto& [predicted, original, answer] : cases) {
    EXPECT_EQ(project_answer(predicted, original, text::Casing::kUncased), answer);
  }
}

}  // namespace
}  // namespace onebit::squad
