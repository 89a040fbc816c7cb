// SQuAD's JSON, for training and for prediction.
#include "onebit/apps/squad/dataset.h"
#include "onebit/ground/base/json.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  expect_error_at_most([&] {
    const Json json = parse_json(text_of(data, size), "input.json");
    for (const auto use : {squad::Use::kTrain, squad::Use::kPredict}) {
      expect_error_at_most(
          [&] { squad::problem_summary(squad::dataset_from_json(json, "input.json", use)); });
    }
  });
  return 0;
}
