#include "onebit/data/samples/tfrecord_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/samples/record_file.h"

namespace onebit::samples {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Feature> features_of(const std::string& message, const ExampleLimits& limits = {}) {
  std::vector<Feature> found;
  for_each_feature(
      message, "place", 0, limits, [](std::string_view name) { return name != "other"; },
      [&](Feature& feature) { found.push_back(feature); });
  return found;
}

TEST(TfExample, ReadsNumbersInBothForms) {
  // Packed, and one field a number.
  const std::string apart =
      message_field(3, varint(1 << 3) + varint(7) + varint(1 << 3) + varint(300));
  const std::string message =
      example(feature("packed", integer_list({1, 200, -3})) + feature("apart", apart) +
              feature("floats", float_list({1.0f, 0.5f})));
  const auto found = features_of(message);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "packed");
  EXPECT_EQ(found[0].kind, Feature::Kind::kIntegers);
  EXPECT_THAT(found[0].integers, ElementsAre(1, 200, -3));
  EXPECT_THAT(found[1].integers, ElementsAre(7, 300));
  EXPECT_EQ(found[2].kind, Feature::Kind::kFloats);
  EXPECT_THAT(found[2].floats, ElementsAre(1.0f, 0.5f));
}

TEST(TfExample, LeavesOutWhatIsNotWanted) {
  const std::string unknown_field = varint(9 << 3 | 5) + bytes_of_number(uint32_t{4});
  const std::string message = unknown_field + example(feature("other", integer_list({1})) +
                                                      feature("mine", integer_list({})));
  const auto found = features_of(message);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].integers.empty());
  EXPECT_TRUE(features_of("").empty());
}

TEST(TfExample, RefusesWhatIsDamaged) {
  const std::string message = example(feature("packed", integer_list({1, 200, -3})));
  for (size_t size = 1; size < message.size(); ++size) {
    EXPECT_THAT(message_of([&] { features_of(message.substr(0, size)); }), HasSubstr("place"))
        << size;
  }
  // A group, which no proto3 message has.
  EXPECT_THAT(message_of([&] { features_of(varint(1 << 3 | 3)); }), HasSubstr("damaged message"));
}

TEST(TfExample, BoundsAList) {
  const std::string message = example(feature("long", integer_list(std::vector<int64_t>(5, 1))));
  EXPECT_EQ(features_of(message, {.most_numbers = 5}).front().integers.size(), 5u);
  EXPECT_THAT(message_of([&] { features_of(message, {.most_numbers = 4}); }),
              HasSubstr("more than 4 numbers"));
}

}  // namespace
}  // namespace onebit::samples
