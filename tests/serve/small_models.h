// Model folders of random values, one of each kind that is served.
#pragma once

#include <memory>
#include <string>

#include "onebit/apps/classify/classification_model.h"
#include "onebit/apps/squad/question_answering_model.h"
#include "onebit/apps/tag/tagging_model.h"
#include "onebit/data/formats/sentence_files.h"
#include "onebit/math/model/head_names.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::serve {

inline training::ModelDescription small_description(const char* architecture) {
  const auto vocabulary = std::make_shared<text::Vocabulary>(
      text::Vocabulary::load(Path(ONEBIT_SOURCE_DIR) / "tests/text/golden/vocab.txt"));
  return {.config = {.vocab_size = vocabulary->size(),
                     .hidden_size = 32,
                     .layers = 2,
                     .heads = 2,
                     .intermediate_size = 64,
                     .max_positions = 64,
                     .initializer_range = 0.2},
          .architecture = architecture,
          .vocabulary = vocabulary};
}

inline void write_values(ParameterTable& table, const Path& folder,
                         const training::ModelDescription& description) {
  table.allocate(Device{}, DType::kF32);
  table.initialize(1);
  std::filesystem::create_directories(folder);
  training::ValueSnapshot(table).write(folder, description);
}

// A sentence model whose texts may have 24 tokens, with the prompts "query" and "passage".
inline void write_small_encoder(const Path& folder) {
  training::ModelDescription description = small_description(model::kPretrainingArchitecture);
  description.sentence = formats::SentenceFiles{
      .max_sequence_length = 24, .prompts = {{"query", "search for "}, {"passage", "read "}}};
  ParameterTable table;
  const model::PreTrainingModel model(description.config, table, model::PreTrainingHeads::kBoth);
  write_values(table, folder, description);
}

// A classifier with a label for each output. One output makes a reranker.
inline void write_small_classifier(const Path& folder, std::vector<std::string> labels) {
  training::ModelDescription description = small_description(model::kClassifierArchitecture);
  ParameterTable table;
  const classify::ClassificationModel model(
      description.config, {.outputs = static_cast<int64_t>(labels.size())}, table);
  description.classifier.labels = std::move(labels);
  write_values(table, folder, description);
}

inline void write_small_tagger(const Path& folder) {
  training::ModelDescription description = small_description(model::kTaggerArchitecture);
  description.classifier.labels = {"O", "B-PER", "I-PER", "B-LOC"};
  ParameterTable table;
  const tag::TaggingModel model(description.config, {.outputs = 4}, table);
  write_values(table, folder, description);
}

inline void write_small_reader(const Path& folder) {
  const training::ModelDescription description = small_description(model::kAnswerArchitecture);
  ParameterTable table;
  const squad::QuestionAnsweringModel model(description.config, table);
  write_values(table, folder, description);
}

inline void write_small_filler(const Path& folder) {
  const training::ModelDescription description = small_description(model::kMaskedWordArchitecture);
  ParameterTable table;
  const model::PreTrainingModel model(description.config, table,
                                      model::PreTrainingHeads::kMaskedWords);
  write_values(table, folder, description);
}

}  // namespace onebit::serve
