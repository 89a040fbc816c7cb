#include "onebit/math/model/head_names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "onebit/math/model/classification_model.h"
#include "onebit/math/model/embedding_model.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/model/question_answering_model.h"
#include "onebit/math/model/tagging_model.h"
#include "tests/model/test_model.h"

namespace onebit::model {
namespace {

// Every tensor is the encoder's or has exactly one prefix of each list.
void expect_known(const ParameterTable& table) {
  for (const ParameterEntry& entry : table.entries()) {
    const auto begins = [&](const char* prefix) { return entry.name.starts_with(prefix); };
    const bool of_encoder = begins("bert.") && !begins(kPooler);
    EXPECT_EQ(std::ranges::count_if(kHeadPrefixes, begins), of_encoder ? 0 : 1) << entry.name;
    EXPECT_EQ(std::ranges::count_if(kHeadParts, begins), of_encoder ? 0 : 1) << entry.name;
  }
}

TEST(HeadNames, AreThoseThatModelsDeclare) {
  const BertConfig config = tiny_config(true);
  ParameterTable pretraining, answering, classifying, tagging, embedding;
  const PreTrainingModel words(config, pretraining, PreTrainingHeads::kBoth);
  const QuestionAnsweringModel answers(config, answering);
  const ClassificationModel classes(config, {.outputs = 3}, classifying);
  const TaggingModel tags(config, {.outputs = 3}, tagging);
  const EmbeddingModel vectors(config, {}, embedding);
  for (const ParameterTable* table :
       {&pretraining, &answering, &classifying, &tagging, &embedding}) {
    expect_known(*table);
  }
}

}  // namespace
}  // namespace onebit::model
