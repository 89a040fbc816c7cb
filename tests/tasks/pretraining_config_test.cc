#include "onebit/tasks/pretraining_config.h"
#include "onebit/base/json.h"

#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::tasks {
namespace {

PretrainingData parse(const std::string& text) {
  const Keys keys(parse_json(text, "recipe"), "recipe", "data");
  const PretrainingData data = parse_pretraining_data(keys);
  keys.check();
  return data;
}

// A number of its own would mask 4 % of a sequence of 512 without a word.
TEST(PretrainingData, MasksTheShareOfAFullSequenceWhateverItsLength) {
  EXPECT_EQ(parse("{}").masks.max_predictions, 20);
  EXPECT_EQ(parse(R"({"sequence_length": 20})").masks.max_predictions, 3);
  EXPECT_EQ(parse(R"({"sequence_length": 512})").masks.max_predictions, 77);
  EXPECT_EQ(
      parse(R"({"sequence_length": 512, "masked_lm_probability": 0.3})").masks.max_predictions,
      154);
  EXPECT_EQ(parse(R"({"sequence_length": 8, "masked_lm_probability": 0.01})").masks.max_predictions,
            1);
  EXPECT_EQ(parse(R"({"sequence_length": 512, "max_predictions_per_sequence": 20})")
                .masks.max_predictions,
            20);
}

TEST(PretrainingData, ValuesOutOfRangeAreNamed) {
  const auto error_of = [](const std::string& text) { return message_of([&] { parse(text); }); };
  EXPECT_NE(error_of(R"({"sequence_length": 9000000000000000000})").find("sequence_length"),
            std::string::npos);
  for (const char* bad : {"-1", "0", "1e300"}) {
    EXPECT_NE(error_of(fmt::format(R"({{"masked_lm_probability": {}}})", bad))
                  .find("`data.masked_lm_probability` is"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace onebit::tasks
