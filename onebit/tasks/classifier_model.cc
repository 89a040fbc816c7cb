#include "onebit/tasks/classifier_model.h"

#include "onebit/base/error.h"

namespace onebit::tasks {

ClassifierModel read_classifier_model(Keys section) {
  ClassifierModel model;
  model.memory = model::read_memory_options(section);
  const Limits limits = at_least(0).below(1);
  section.number("hidden_dropout_prob", model.hidden_dropout, limits,
                 {"dropout after embeddings and sublayers", "the checkpoint's"});
  section.number("attention_probs_dropout_prob", model.attention_dropout, limits,
                 {"dropout of attention probabilities", "the checkpoint's"});
  section.number("classifier_dropout", model.classifier_dropout, limits,
                 {"dropout before the classifier", "the checkpoint's, else hidden_dropout_prob"});
  return model;
}

training::ModelDescription with_recipe(const ClassifierModel& model, int64_t max_sequence_length,
                                       const std::string& place,
                                       training::ModelDescription checkpoint) {
  model::BertConfig& shape = checkpoint.config;
  if (model.hidden_dropout) shape.hidden_dropout = *model.hidden_dropout;
  if (model.attention_dropout) shape.attention_dropout = *model.attention_dropout;
  model::validate(shape, place + ": model");
  require(max_sequence_length <= shape.max_positions,
          "{}: `data.max_sequence_length` is {}, the model has {} positions", place,
          max_sequence_length, shape.max_positions);
  if (model.classifier_dropout) checkpoint.classifier.dropout = model.classifier_dropout;
  return checkpoint;
}

}  // namespace onebit::tasks
