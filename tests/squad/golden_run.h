// Features on the vocabulary of the golden files, and the runs of the published programs over an
// invented dataset (tools/make_squad_feature_goldens.py).
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "onebit/apps/squad/features.h"
#include "onebit/ground/base/json.h"

namespace onebit::squad {

inline std::shared_ptr<const text::Vocabulary> vocabulary() {
  static const auto loaded = std::make_shared<text::Vocabulary>(
      text::Vocabulary::load(Path(ONEBIT_SOURCE_DIR) / "tests/text/golden/vocab.txt"));
  return loaded;
}

inline Features features_of(const Dataset& dataset, const FeatureOptions& options) {
  return {dataset, vocabulary(), text::Casing::kUncased, options};
}

// The parameter is the number of the run.
class GoldenRun : public testing::TestWithParam<size_t> {
 protected:
  GoldenRun()
      : golden_(read_json(Path(ONEBIT_SOURCE_DIR) / "tests/squad/golden/features.json")),
        run_(golden_.at("runs").at(GetParam())) {}

  FeatureOptions options(Use use) const {
    const Json& given = run_.at("options");
    return {.max_sequence_length = given.at("max_sequence_length"),
            .doc_stride = given.at("doc_stride"),
            .max_question_length = given.at("max_question_length"),
            .use = use,
            .without_answer = WindowsWithoutAnswer::kToCls,
            .threads = 2};
  }
  Dataset dataset(Use use) const { return dataset_from_json(golden_.at("dataset"), "golden", use); }

  Json golden_, run_;
};

}  // namespace onebit::squad
