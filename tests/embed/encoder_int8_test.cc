// Vectors of models whose products are of int8.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/embed/encoder.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/math/ops/int8_linear.h"
#include "tests/finetune/model_folders.h"
#include "tests/finetune/small_corpus.h"

namespace onebit::embed {
namespace {

class EncoderInt8Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = ops::why_no_int8(context_); !why.empty()) GTEST_SKIP() << why;
  }

  static finetune::Example example(const std::string& text) {
    finetune::Example result;
    result.text = text;
    return result;
  }

  // Texts of many lengths.
  static std::vector<finetune::Example> texts() {
    constexpr const char* kWords[] = {"the", "king", "went", "home", "and", "saw", "a", "crown"};
    std::vector<finetune::Example> all;
    std::string text;
    for (size_t i = 0; i < 40; ++i) {
      text += std::string(kWords[(i * 5 + i / 8) % 8]) + " ";
      all.push_back(example(text));
      if (i % 11 == 10) text.clear();
    }
    return all;
  }

  finetune::SmallCorpus corpus_;
  Context context_ = Context::cpu(2);
};

// The families differ in what they multiply: gated feed-forward parts, layers without a bias,
// rotary positions, windows, norms before the parts.
TEST_F(EncoderInt8Test, VectorsOfEveryFamilyAreNearThoseOfF32) {
  const auto vocabulary = corpus::TokenStore(corpus_.train()).vocabulary();
  const std::vector<finetune::Example> all = texts();
  for (const formats::Family& family : formats::families()) {
    const std::string name(family.model_type);
    SCOPED_TRACE(name);
    const Path folder = corpus_.folder(name);
    const auto config = finetune::write_model_of(family, folder, vocabulary);
    Encoder exact(context_, folder, {.normalize = true, .compute = DType::kF32});
    Encoder rounded(context_, folder, {.normalize = true, .compute = training::kInt8});
    const std::vector<float> wanted = exact.vectors(all), got = rounded.vectors(all);
    ASSERT_EQ(got.size(), wanted.size());
    EXPECT_NE(got, wanted) << "nothing was rounded";
    const auto hidden = static_cast<size_t>(config.hidden_size);
    for (size_t text = 0; text < all.size(); ++text) {
      double cosine = 0;
      for (size_t i = text * hidden; i < (text + 1) * hidden; ++i) {
        cosine += double{wanted[i]} * double{got[i]};
      }
      EXPECT_GT(cosine, 0.998) << all[text].text;
    }
  }
}

// Sums of integers do not depend on how products are computed.
TEST_F(EncoderInt8Test, AVectorDoesNotDependOnTheOtherTexts) {
  const auto vocabulary = corpus::TokenStore(corpus_.train()).vocabulary();
  const Path folder = corpus_.folder("bert");
  finetune::write_model_of(formats::find_family("bert", ""), folder, vocabulary);
  const std::vector<finetune::Example> all = texts();
  Encoder together(context_, folder, {.batch = 64, .compute = training::kInt8});
  const std::vector<float> wanted = together.vectors(all);
  for (const int64_t batch : {1, 3, 7}) {
    Encoder encoder(context_, folder, {.batch = batch, .compute = training::kInt8});
    EXPECT_EQ(encoder.vectors(all), wanted) << batch;
  }
  Context other = Context::cpu(1);
  Encoder alone(other, folder, {.compute = training::kInt8});
  EXPECT_EQ(alone.vectors(all), wanted);
}

}  // namespace
}  // namespace onebit::embed
