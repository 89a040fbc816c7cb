// /fill.

#include "onebit/apps/pretrain/fill_mask.h"
#include "tests/base/message_of.h"
#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

class FillService : public ServiceTest {};

TEST_F(FillService, FillGivesTokensForEveryMask) {
  write_small_filler(at("words"));
  serve({"words"});
  const Json masks = answer("/fill", R"({"inputs": "the [MASK] was [MASK]", "top_k": 2})");
  Context context = Context::cpu(1);
  pretrain::MaskFiller filler(context, at("words"));
  const auto wanted = filler.fill("the [MASK] was [MASK]", 2);
  ASSERT_EQ(masks.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(masks[i].size(), 2u);
    for (size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(masks[i][j]["token"], wanted[i].candidates[j].id);
      EXPECT_EQ(masks[i][j]["token_str"], wanted[i].candidates[j].token);
      EXPECT_NEAR(masks[i][j]["score"].get<double>(), wanted[i].candidates[j].probability, 1e-6);
    }
  }
  EXPECT_EQ(answer("/fill", R"({"inputs": ["a [MASK]", "[MASK]"]})").size(), 2u);
  expect_refusal("/fill", R"({"inputs": "a"})", 422, "Validation", "[MASK]");
  std::string many;
  for (int i = 0; i < 21; ++i) many += "[MASK] ";
  expect_refusal("/fill", R"({"inputs": ")" + many + R"(", "top_k": 1000})", 422, "Validation",
                 "20000 candidates");
  expect_refusal("/fill", R"({"inputs": "[MASK]", "top_k": 1001})", 422, "Validation", "`top_k`");
  expect_refusal("/fill", R"({"inputs": "[MASK])" + std::string(200, '.') + "\"}", 422,
                 "Validation", "less than 65 tokens");
  EXPECT_EQ(json_of(get("/info"))["model_type"]["fill"]["mask_token"], "[MASK]");
}

TEST_F(FillService, ALengthThatIsGivenIsALimit) {
  write_small_filler(at("words"));
  options_.endpoints.max_sequence_length = 6;
  serve({"words"});
  EXPECT_EQ(answer("/fill", R"({"inputs": "the [MASK] ..", "top_k": 1})").size(), 1u);
  expect_refusal("/fill", R"({"inputs": "the [MASK] ..."})", 422, "Validation",
                 "less than 7 tokens. Given: 7");
  EXPECT_EQ(json_of(get("/info"))["max_input_length"], 6);
  options_.endpoints.max_sequence_length = 65;
  EXPECT_THAT(message_of([&] { serve({"words"}); }), testing::HasSubstr("64 positions"));
}

}  // namespace
}  // namespace onebit::serve
