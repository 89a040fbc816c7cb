#include "onebit/ground/base/config_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit {
namespace {

using ::testing::HasSubstr;

constexpr ModelSizes kLarge = {.vocab_size = 30522,
                               .hidden_size = 1024,
                               .layers = 24,
                               .heads = 16,
                               .intermediate_size = 4096,
                               .positions = 512,
                               .segments = 2};

TEST(ModelLimits, OrdinarySizesArePossible) {
  EXPECT_FALSE(find_size_flaw(kLarge).has_value());
  ModelSizes deep = kLarge;
  deep.layers = 10'000;
  EXPECT_FALSE(find_size_flaw(deep).has_value());
}

TEST(ModelLimits, EachSizeHasALimit) {
  for (const auto& [size, key] :
       {std::pair{&ModelSizes::vocab_size, config_keys::kVocabSize},
        std::pair{&ModelSizes::hidden_size, config_keys::kHiddenSize},
        std::pair{&ModelSizes::layers, config_keys::kLayers},
        std::pair{&ModelSizes::heads, config_keys::kHeads},
        std::pair{&ModelSizes::intermediate_size, config_keys::kIntermediateSize},
        std::pair{&ModelSizes::positions, config_keys::kPositions},
        std::pair{&ModelSizes::segments, config_keys::kSegments}}) {
    for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{1} << 31, INT64_MAX}) {
      EXPECT_TRUE(value < 1 || value > largest_size(key));
      ModelSizes sizes = kLarge;
      sizes.*size = value;
      const auto flaw = find_size_flaw(sizes);
      ASSERT_TRUE(flaw.has_value()) << key << " " << value;
      EXPECT_EQ(flaw->key, key);
      EXPECT_THAT(flaw->reason, HasSubstr(fmt::format("is {}; it must be at least 1", value)));
    }
  }
}

TEST(ModelLimits, AllTogetherHaveALimit) {
  ModelSizes sizes = kLarge;
  sizes.hidden_size = 1 << 20;
  sizes.intermediate_size = 1 << 22;
  const auto flaw = find_size_flaw(sizes);
  ASSERT_TRUE(flaw.has_value());
  EXPECT_EQ(flaw->key, config_keys::kHiddenSize);
  EXPECT_THAT(flaw->reason, HasSubstr("parameters; at most 2^40"));
}

}  // namespace
}  // namespace onebit
