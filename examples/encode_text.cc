// Uses onebit's encoder in a program of your own: reads passages from standard input, one per line,
// and writes the outputs of the model to a safetensors file:
//   tokens [rows] i32, starts [passages + 1] i32, hidden [rows, hidden] f32 (the last layer), and
//   if the model has a question-answering head, answers [rows, 2] f32 (first and last token).
//
//   build/examples/encode_text MODEL_FOLDER OUTPUT.safetensors < passages.txt
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "onebit/apps/squad/question_answering_model.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/math/model/bert.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/model_folder.h"

using namespace onebit;

namespace {

// Tokens as [CLS] passage [SEP], each passage cut to the model's positions.
batches::Batch read_passages(const training::ModelDescription& model) {
  text::Tokenizer tokenizer(model.vocabulary, model.casing);
  batches::Batch batch;
  batch.sequence_starts = {0};
  std::vector<int32_t> ids;
  for (std::string line; std::getline(std::cin, line);) {
    ids.clear();
    tokenizer.encode(line, ids);
    ids.resize(std::min(ids.size(), static_cast<size_t>(model.config.max_positions - 2)));
    const int64_t first_row = batch.rows();
    batch.tokens.push_back(model.vocabulary->cls_id());
    batch.tokens.insert(batch.tokens.end(), ids.begin(), ids.end());
    batch.tokens.push_back(model.vocabulary->sep_id());
    batch.segments.resize(batch.tokens.size(), 0);
    batch.end_sequence(first_row, static_cast<uint64_t>(batch.sequences()));
  }
  require(batch.sequences() > 0, "standard input is empty; expected one passage per line");
  return batch;
}

batches::BatchBounds bounds_of(const batches::Batch& batch) {
  return {.sequences = batch.sequences(), .rows = batch.rows()};
}

Tensor hidden_states(Context& context, const training::ModelDescription& description,
                     const Path& folder, const batches::Batch& batch) {
  ParameterTable table;
  model::Bert encoder(description.config, table);
  table.allocate(context.device(), DType::kF32);
  training::load_values(
      table, folder,
      {.may_lack = {}, .may_ignore = {"bert.pooler.", "cls.", "qa_outputs.", "classifier."}});
  model::MemoryPlan memory(context.device());
  encoder.reserve(memory, {.limits = training::limits_of(bounds_of(batch))});
  training::DeviceBatchBuffer buffer(context.device(), bounds_of(batch));
  const View hidden = encoder.forward(context, buffer.upload(context, batch), {}, nullptr);
  Tensor result(Device{}, DType::kF32, hidden.shape());
  copy(result.view(), hidden);
  return result;
}

Tensor answer_scores(Context& context, const training::ModelDescription& description,
                     const Path& folder, const batches::Batch& batch) {
  ParameterTable table;
  squad::QuestionAnsweringModel answerer(description.config, table);
  table.allocate(context.device(), DType::kF32);
  training::load_values(table, folder,
                        {.may_lack = {}, .may_ignore = {"bert.pooler.", "cls.", "classifier."}});
  answerer.plan(context, training::limits_of(bounds_of(batch)), {}, false);
  training::DeviceBatchBuffer buffer(context.device(), bounds_of(batch));
  return answerer.predict(context, buffer.upload(context, batch));
}

void run(const Path& path, const Path& output) {
  Context context = Context::cpu(static_cast<int>(std::thread::hardware_concurrency()));
  const Path folder = training::find_model_folder(path);
  const training::ModelDescription description = training::read_model_description(folder);
  const batches::Batch batch = read_passages(description);
  const Tensor hidden = hidden_states(context, description, folder, batch);
  std::vector<formats::NamedTensor> tensors = {
      {"tokens", batch.tokens.data(), {batch.rows()}},
      {"starts", batch.sequence_starts.data(), {batch.sequences() + 1}},
      {"hidden", hidden.data<float>(), hidden.shape()}};
  Tensor answers;
  if (formats::open_hugging_face_tensors(folder)->find("qa_outputs.weight")) {
    answers = answer_scores(context, description, folder, batch);
    tensors.emplace_back("answers", answers.data<float>(), answers.shape());
  }
  formats::write_safetensors(output, tensors);
  fmt::print("{}: {} passages, {} tokens\n", output.string(), batch.sequences(), batch.rows());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: encode_text MODEL_FOLDER OUTPUT.safetensors < passages.txt\n");
    return 2;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
