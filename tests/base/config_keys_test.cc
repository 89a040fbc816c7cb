#include "onebit/ground/base/config_keys.h"

#include <gtest/gtest.h>

#include <vector>

namespace onebit {
namespace {

TEST(DefaultLabels, AreNumbered) {
  EXPECT_EQ(default_label(12), "LABEL_12");
  using Labels = std::vector<std::string>;
  EXPECT_TRUE(are_default_labels(Labels{"LABEL_0", "LABEL_1"}));
  EXPECT_FALSE(are_default_labels(Labels{"LABEL_1", "LABEL_0"}));
  EXPECT_FALSE(are_default_labels(Labels{"LABEL_0", "yes"}));
}

}  // namespace
}  // namespace onebit
