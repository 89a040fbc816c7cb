#include "onebit/program/serve/reply_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "onebit/ground/base/json.h"

namespace onebit::serve {
namespace {

std::string json_of(const std::vector<float>& numbers) {
  std::string text;
  append_json(numbers, text);
  return text;
}

TEST(AppendJson, HasTheFewestDigits) {
  EXPECT_EQ(json_of({}), "[]");
  EXPECT_EQ(json_of({0.25F, -1, 0.1F, 1e-10F}), "[0.25,-1,0.1,1e-10]");
}

TEST(AppendJson, RestoresEveryNumber) {
  std::mt19937 random(1);
  std::vector<float> numbers = {0.0F, -0.0F, FLT_MIN, FLT_MAX, FLT_TRUE_MIN, -FLT_MAX};
  while (numbers.size() < 20000) {
    const auto number = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (number - number == 0) numbers.push_back(number);
  }
  const Json read = parse_json(json_of(numbers), "numbers");
  ASSERT_EQ(read.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(read[i].get<float>(), numbers[i]);
}

TEST(AppendJson, WritesTextsAsTheLibraryDoes) {
  std::string all = "é\xF0\x9F\x98\x80";
  for (int byte = 0; byte < 128; ++byte) all += static_cast<char>(byte);
  for (const std::string& value : {std::string(), std::string("king"), std::string("a \"b\" \\c/"),
                                   all, std::string("half a character \xC3")}) {
    std::string text = "x";
    append_json(std::string_view(value), text);
    EXPECT_EQ(text, "x" + json_text(Json(value)));
  }
}

// Python: base64.b64encode(struct.pack("<3f", 0.25, -1, 0.1))
TEST(Base64Of, IsPythons) {
  EXPECT_EQ(base64_of(std::vector<float>{}), "");
  EXPECT_EQ(base64_of(std::vector<float>{0.25F}), "AACAPg==");
  EXPECT_EQ(base64_of(std::vector<float>{0.25F, -1}), "AACAPgAAgL8=");
  EXPECT_EQ(base64_of(std::vector<float>{0.25F, -1, 0.1F}), "AACAPgAAgL/NzMw9");
}

}  // namespace
}  // namespace onebit::serve
