#include "onebit/math/model/head_names.h"

#include "onebit/math/model/pretraining_model.h"
#include "tests/model/known_heads.h"
#include "tests/model/test_model.h"

namespace onebit::model {
namespace {

TEST(HeadNames, AreThoseOfPretraining) {
  ParameterTable table;
  const PreTrainingModel model(tiny_config(true), table, PreTrainingHeads::kBoth);
  expect_known(table);
}

}  // namespace
}  // namespace onebit::model
