#include "onebit/apps/embed/embed_task.h"

#include <algorithm>
#include <utility>

#include "onebit/apps/embed/encoder.h"
#include "onebit/apps/embed/losses.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/finetune/fine_tuning_task.h"

namespace onebit::embed {

namespace {

std::string counted(const Examples& examples) {
  return fmt::format("{} {}", examples.size(), embed::name_of(examples.kind));
}

std::span<const std::byte> bytes_of(ConstView view) {
  if (view.empty()) return {};
  return {static_cast<const std::byte*>(view.raw()), static_cast<size_t>(view.size_bytes())};
}

}  // namespace

EmbedTask::EmbedTask(Context& context, const finetune::FineTuningOptions& options,
                     const training::Connection& connection)
    : FineTuningTask(options.model, parse_embed_recipe(options.recipe)),
      communicator_(open_ranks(connection).duplicate()),
      host_(Context::cpu(context.threads())) {
  const Path folder = training::find_model_folder(options.model);
  description_ = finetune::with_recipe(config_, training::read_model_description(folder));
  config_.max_sequence_length = finetune::fitting_length(config_, config_.max_sequence_length,
                                                         description_, facts_.decisions);
  description_.architecture = model::kEncoderArchitecture;
  description_.classifier = {};
  describe_vectors(folder);
  examples_ = embed::read_examples(options.train, config_.layout);
  open_train_data(context.threads());
  if (!options.dev.empty()) open_dev_data(options.dev, context.threads());
  choose_metric();
  facts_.name = kEmbedTask;
  facts_.use = "onebit embed encode --model {} --input FILE --output FILE";
  facts_.sequences = fmt::format("{} of texts of at most {} tokens, without padding",
                                 embed::name_of(examples_.kind), encoded_->longest());
  choose_steps(static_cast<uint64_t>(examples_.size()), communicator_->world_size());
}

void EmbedTask::describe_vectors(const Path& folder) {
  formats::SentenceFiles sentence =
      formats::read_sentence_files(folder).value_or(formats::SentenceFiles());
  if (config_.pooling) sentence.pooling = *config_.pooling;
  if (config_.normalize) sentence.normalize = *config_.normalize;
  sentence.max_sequence_length = config_.max_sequence_length;
  require(sentence.dense.empty(),
          "{}: the model has {} Dense after its pooling, which onebit computes and does not train; "
          "train the encoder without its modules.json, or with sentence-transformers",
          folder.string(), sentence.dense.size() == 1 ? "a layer" : "layers");
  require(EmbeddingModel::is_trainable({.modes = sentence.pooling}),
          "{}: pools by {}, which onebit computes and does not train; it trains mean and cls: "
          "--set embed.pooling=mean trains the encoder for another vector",
          folder.string(), formats::words_of(sentence.pooling));
  description_.sentence = sentence;
  facts_.decisions.push_back(fmt::format(
      "a text's vector is {}{}",
      sentence.pooling == std::vector{formats::SentencePooling::kMean}
          ? "the mean of its tokens' last hidden states"
          : "the last hidden state of its first token",
      sentence.normalize ? ", normalized to length 1 by programs that use the model" : ""));
  if (!sentence.prompts.empty()) {
    facts_.decisions.emplace_back(
        "the model's prompts are kept, and none is put before a text of the training data: write "
        "them into the texts if the model is used with them");
  }
}

// Reports how many texts were truncated.
finetune::EncodedExamples EmbedTask::encoded(const Examples& examples, int threads) {
  finetune::EncodedExamples texts(
      examples.texts.all, description_.vocabulary, description_.casing,
      {.max_sequence_length = config_.max_sequence_length, .has_pairs = false, .threads = threads});
  finetune::report_cut({.source = examples.source(),
                        .cut = texts.cut(),
                        .all = texts.size(),
                        .max_sequence_length = config_.max_sequence_length},
                       facts_.decisions);
  return texts;
}

void EmbedTask::open_train_data(int threads) {
  encoded_ = std::make_unique<finetune::EncodedExamples>(encoded(examples_, threads));
  facts_.data_rows.push_back(
      {"training data", fmt::format("{}: {}", examples_.source(), counted(examples_))});
  if (!examples_.texts.unread.empty()) facts_.decisions.push_back(examples_.texts.unread);
  if (!examples_.texts.left_out.empty()) facts_.decisions.push_back(examples_.texts.left_out);
}

void EmbedTask::open_dev_data(const Path& dev, int threads) {
  Examples examples = embed::read_examples(dev, config_.layout);
  finetune::EncodedExamples texts = encoded(examples, threads);
  add_dev_file(examples.source(), counted(examples),
               finetune::bounds_of(texts, config_.prediction_batch), embed::checksum(examples));
  if (!examples.texts.left_out.empty()) facts_.decisions.push_back(examples.texts.left_out);
  dev_ = std::make_unique<Dev>(Dev{std::move(examples), std::move(texts)});
}

void EmbedTask::choose_metric() {
  const Kind kind = dev_ ? dev_->examples.kind : examples_.kind;
  const auto names = embed::metric_names(kind);
  const auto found = training::find_kept_by(names, config_.best_by);
  require(found.has_value(),
          "{}: key `embed.best_by` is {}, which a file of {} does not have: use {}",
          config_.engine.place, config_.best_by, embed::name_of(kind), names.front().name);
  facts_.kept_by = *found;
}

void EmbedTask::declare(ParameterTable& table) {
  const Pooling pooling{.modes = description_.sentence->pooling};
  model_ = std::make_unique<EmbeddingModel>(description_.config, pooling, table);
}

finetune::DataIdentity EmbedTask::identity() const {
  return {{{"kind", embed::name_of(examples_.kind)},
           {"examples", examples_.size()},
           {"data", embed::checksum(examples_)}},
          examples_.source(),
          "texts or scores"};
}

void EmbedTask::prepare_ranking(const training::StreamShare& share) {
  const int64_t all = step_parts_.size_of_micro_step(0), parts = examples_.parts();
  const int64_t least = step_parts_.size_of_micro_step(share.accumulation - 1);
  require(
      least >= 2 || parts > 2,
      "{}: the micro-batches of all ranks contain one pair, whose anchor has no other text to be "
      "ranked among; raise train_micro_batch_size_per_gpu",
      config_.engine.place);
  const int64_t hidden = description_.config.hidden_size;
  ranking_.emplace(all, parts, hidden, config_.scale);
  if (share.world_size > 1) all_vectors_ = Tensor(Device{}, DType::kF32, {all * parts, hidden});
  facts_.decisions.push_back(
      fmt::format("each anchor has to find its positive among the {}{} {} of a micro-step of all "
                  "ranks",
                  least == all ? "" : fmt::format("{} to ", least * (parts - 1)), all * (parts - 1),
                  parts > 2 ? "positives and negatives" : "positives"));
}

std::unique_ptr<training::BatchSource> EmbedTask::make_source(const training::StreamShare& share,
                                                              Json identity) {
  step_parts_ = batches::parts_of(share);
  if (is_ranked()) prepare_ranking(share);
  return std::make_unique<finetune::ItemSource<ExampleStream>>(
      ExampleStream(*encoded_, examples_, share), std::move(identity));
}

std::string EmbedTask::fill(ParameterTable& table) {
  return finetune::fill_from_model(
      table, {.model = model_folder_, .heads = {}, .seed = config_.engine.run.seed});
}

EmbedTask::Gathered EmbedTask::gather(ConstView vectors, int64_t micro_step) {
  const int64_t row_bytes = description_.config.hidden_size * size_bytes_of(DType::kF32);
  std::vector<int64_t> sizes_bytes;
  int64_t examples = 0;
  Range own;
  for (int rank = 0; rank < communicator_->world_size(); ++rank) {
    const int64_t part = step_parts_.part_of(rank, micro_step);
    const int64_t begin = std::exchange(examples, examples + step_parts_.size(part));
    if (rank == communicator_->rank()) own = {begin, examples};
    sizes_bytes.push_back((examples - begin) * examples_.parts() * row_bytes);
  }
  if (communicator_->world_size() == 1) return {vectors, own};
  const View all = all_vectors_.first_rows(examples * examples_.parts());
  communicator_->all_gather_v(
      bytes_of(vectors),
      {static_cast<std::byte*>(all.raw()), static_cast<size_t>(all.size_bytes())}, sizes_bytes);
  return {all, own};
}

training::Sums EmbedTask::rank(const Gathered& gathered, double gradient_scale, View gradients) {
  const auto result = ranking_->run(host_, {.vectors = gathered.vectors,
                                            .gradient_scale = gradient_scale,
                                            .own = gathered.own,
                                            .gradients = gradients});
  return {result.loss_sum, static_cast<double>(result.correct)};
}

training::Sums EmbedTask::compare(ConstView vectors, ConstView scores, double gradient_scale,
                                  View gradients) {
  const Tensor wanted = to_cpu_f32(scores);
  return {similarity_loss({.vectors = vectors,
                           .scores = wanted.view(),
                           .gradient_scale = gradient_scale,
                           .gradients = gradients}),
          0.0};
}

training::Sums EmbedTask::forward_backward(Context& context, const model::DeviceBatch& batch,
                                           const training::StepItems& items,
                                           const model::TrainingPass& pass) {
  const double scale = items.weight(items.samples) * pass.loss_scale;
  training::Sums sums;
  const auto loss = [&](ConstView vectors, View gradients) {
    sums = is_ranked() ? rank(gather(vectors, pass.micro_step), scale, gradients)
                       : compare(vectors, batch.sequence_values, scale, gradients);
  };
  model_->forward_backward(context, batch, loss, pass);
  return sums;
}

// The anchors of other ranks are ranked among the texts of those ranks only.
void EmbedTask::join_pass(const model::TrainingPass& pass) {
  if (is_ranked()) gather({}, pass.micro_step);
}

training::StepMetrics EmbedTask::metrics(const training::StepSums& step) const {
  const auto examples = static_cast<double>(step.items.samples);
  training::StepMetrics metrics = {
      .loss = step.sums[0] / examples,
      .metrics = {
          {"epoch", static_cast<double>(step.samples) / static_cast<double>(examples_.size())}}};
  if (is_ranked()) metrics.metrics.push_back({"accuracy", step.sums[1] / examples});
  return metrics;
}

training::Evaluation EmbedTask::evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                         comm::Communicator& communicator) {
  const Stopwatch watch;
  const std::vector<float> vectors = encode_texts(context, {.model = *model_,
                                                            .texts = dev_->encoded,
                                                            .batch = config_.prediction_batch,
                                                            .buffer = buffer,
                                                            .communicator = communicator});
  scores_ = embed::score(dev_->examples, vectors, context.threads());
  std::vector<metrics::Metric> record = scores_.metrics;
  record.push_back({"examples", static_cast<double>(scores_.examples), true});
  return evaluation_of(std::move(record), watch);
}

void EmbedTask::write_beside_model(const Path& folder) const {
  Json scores = {{"file", dev_->examples.source()}};
  scores.update(embed::json_of(scores_));
  write_scores(folder, scores);
}

std::unique_ptr<training::Task> make_embed_task(Context& context, const training::RunOptions& run,
                                                const training::TaskInputs& inputs,
                                                const training::Connection& connection) {
  return std::make_unique<EmbedTask>(context, finetune::options_of(run, inputs), connection);
}

namespace {

// The number of tokens of each example, over all its texts.
std::vector<int32_t> lengths_of(const finetune::EncodedExamples& encoded, int64_t parts) {
  const std::vector<int32_t>& texts = encoded.lengths();
  std::vector<int32_t> lengths(texts.size() / static_cast<size_t>(parts), 0);
  for (size_t i = 0; i < texts.size(); ++i) lengths[i / static_cast<size_t>(parts)] += texts[i];
  return lengths;
}

}  // namespace

ExampleStream::ExampleStream(const finetune::EncodedExamples& encoded, const Examples& examples,
                             const batches::DealOptions& options)
    : encoded_(encoded),
      examples_(examples),
      dealer_(lengths_of(encoded, examples.parts()), options,
              fmt::format("{}: {} examples", examples.source(), examples.size())),
      micro_batch_(options.micro_batch) {
  ONEBIT_INVARIANT(encoded.size() == examples.size() * examples.parts());
  const std::vector<int32_t> lengths = lengths_of(encoded, examples.parts());
  longest_ = *std::max_element(lengths.begin(), lengths.end());
}

void ExampleStream::build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const {
  batch.clear();
  const auto parts = static_cast<uint32_t>(examples_.parts());
  for (const batches::DealtSample& dealt : dealer_.deal(first_sample, micro_step)) {
    for (uint32_t part = 0; part < parts; ++part) {
      // Each text has a dropout mask of its own.
      encoded_.append(dealt.item * parts + part, dealt.sample * parts + part, batch);
    }
    if (!examples_.scores.empty()) {
      batch.sequence_values.push_back(examples_.scores[dealt.item]);
    }
  }
}

batches::BatchBounds ExampleStream::bounds() const {
  return {.sequences = micro_batch_ * examples_.parts(),
          .rows = micro_batch_ * longest_,
          .longest = longest_,
          .sequence_values = examples_.scores.empty() ? 0 : micro_batch_};
}

}  // namespace onebit::embed
