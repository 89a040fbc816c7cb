#include "onebit/math/kernels/argument_check.h"

#include <gtest/gtest.h>

#include <string>

#include "onebit/ground/base/error.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::kernels {
namespace {

template <class Check>
std::string message_of(const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class ArgumentCheckTest : public testing::Test {
 protected:
  Context context_ = Context::cpu(1);
  ArgumentCheck check_{context_, "layer_norm"};
  Tensor x_ = Tensor::zeros({}, DType::kF32, {2, 3});
};

TEST_F(ArgumentCheckTest, AcceptsTheRequiredShapes) {
  check_.view("x", x_.view(), DType::kF32, {2, 3});
  check_.leading("x", x_.view(), 2);
  check_.optional("y", {}, DType::kF32, {2, 3});
  check_.dropout({}, 2);
  check_.that(true, "never");
}

TEST_F(ArgumentCheckTest, NamesOperationAndArgumentAndWhatCame) {
  EXPECT_EQ(message_of([&] {
              check_.view("x", x_.view(), DType::kBF16, {2, 3});
            }),
            "layer_norm: x must be bf16, but is f32");
  const std::string shape = message_of([&] { check_.view("x", x_.view(), DType::kF32, {3, 3}); });
  EXPECT_EQ(shape.find("layer_norm: x must have shape"), 0) << shape;
  const std::string axes = message_of([&] { check_.leading("x", x_.view(), 1); });
  EXPECT_EQ(axes.find("layer_norm: x must have 1 axes"), 0) << axes;
  EXPECT_EQ(message_of([&] { check_.that(false, "x is wanted"); }), "layer_norm: x is wanted");
}

TEST_F(ArgumentCheckTest, DropoutRequiresAKeyForEachRow) {
  const std::string keys = message_of([&] { check_.dropout({.probability = 0.1f}, 2); });
  EXPECT_EQ(keys.find("layer_norm: dropout.row_keys"), 0) << keys;
  EXPECT_NE(message_of([&] { check_.dropout({.probability = 1}, 2); }), "");
}

}  // namespace
}  // namespace onebit::kernels
