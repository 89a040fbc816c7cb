#include "onebit/apps/squad/python_text.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

namespace onebit::squad {
namespace {

TEST(PythonJson, WritesNumbersAsPythonDoes) {
  const std::pair<double, const char*> numbers[] = {{0, "0.0"},
                                                    {-0.0, "-0.0"},
                                                    {1, "1.0"},
                                                    {0.1, "0.1"},
                                                    {1e-4, "0.0001"},
                                                    {1e-5, "1e-05"},
                                                    {-2.5e-7, "-2.5e-07"},
                                                    {1e15, "1000000000000000.0"},
                                                    {1e16, "1e+16"},
                                                    {100.0 / 3, "33.333333333333336"}};
  for (const auto& [number, text] : numbers) EXPECT_EQ(python_json(number, 0), text);
  const Json value = {{"\u00e9\U0001f600\n\x7f", Json::array({1, 0.5, "x", nullptr, true})},
                      {"empty", Json::object()}};
  EXPECT_EQ(python_json(value, 0),
            R"({"\u00e9\ud83d\ude00\n\u007f": [1, 0.5, "x", null, true], "empty": {}})");
  EXPECT_EQ(python_json(value, 2),
            "{\n  \"\\u00e9\\ud83d\\ude00\\n\\u007f\": [\n    1,\n    0.5,\n    \"x\",\n    "
            "null,\n    true\n  ],\n  \"empty\": {}\n}");
}

}  // namespace
}  // namespace onebit::squad
