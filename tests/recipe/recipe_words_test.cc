#include "onebit/ground/recipe/recipe.h"

#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/text_files.h"

namespace onebit {
namespace {

TEST(RecipeWords, NumbersOfOtherLanguagesAreFoundWithTheirKeys) {
  const auto found = [](const std::string& number) {
    return foreign_number_in(R"({"a": [1, -2.5e-3, "010"], /* 010 */ "lr": )" + number + "}");
  };
  for (const auto& [number, meant] : {std::pair("010", "10"),
                                      {"00", "0"},
                                      {"-01", "-1"},
                                      {"0x10", "16"},
                                      {"-0XfF", "-255"},
                                      {"0b101", "5"},
                                      {"0o17", "15"},
                                      {"1_000", "1000"},
                                      {"+5", "5"},
                                      {".5", "0.5"},
                                      {"-.5", "-0.5"},
                                      {"5.", "5.0"},
                                      {"5.e3", "5.0e3"},
                                      {"00.5", "0.5"}}) {
    EXPECT_EQ(found(number), std::string("The value of \"lr\" is ") + number +
                                 ", which is no number of JSON: write " + meant);
  }
  for (const char* unknown : {"1e999", "0xZ", "1x", "0b2", "1-2"}) {
    EXPECT_EQ(found(unknown),
              std::string("The value of \"lr\" is ") + unknown + ", which is no number of JSON");
  }
  for (const char* right : {"0", "-0", "10", "1e3", "-1.5E+2", "NaN", "\"0x10\"", "true"}) {
    EXPECT_EQ(found(right), "") << right;
  }
  EXPECT_EQ(foreign_number_in("[010]"), "There is 010, which is no number of JSON: write 10");
  EXPECT_EQ(foreign_number_in("{train_batch_size: 010}"),
            "The value of train_batch_size is 010, which is no number of JSON: write 10");
}

// DeepSpeed's parser of Hjson takes 010 for a text, and other programs for an octal number.
TEST(RecipeWords, AForeignNumberOfARecipeIsNamedWithItsKey) {
  const TextFiles files;
  const std::string message = message_of(
      [&] { load_recipe(files.write("ds.json", "{\n  \"train_batch_size\": 010\n}\n"), {}); });
  EXPECT_NE(message.find("ds.json:2:"), std::string::npos) << message;
  EXPECT_NE(message.find("The value of \"train_batch_size\" is 010, which is no number of JSON: "
                         "write 10"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace onebit
