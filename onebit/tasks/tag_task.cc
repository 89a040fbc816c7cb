#include "onebit/tasks/tag_task.h"

#include <algorithm>

#include "onebit/base/clock.h"
#include "onebit/base/log.h"
#include "onebit/tag/tag_set.h"
#include "onebit/tasks/classifier_labels.h"
#include "onebit/tasks/tag_batch.h"
#include "onebit/training/epochs.h"
#include "onebit/training/run_folder.h"
#include "onebit/training/training_loop.h"

namespace onebit::tasks {
namespace {

using tag::Scheme;

constexpr const char* kScoresFile = "scores.json";
constexpr size_t kMostLabelsShown = 10;

class TagSource : public training::BatchSource {
 public:
  // `state` shows in checkpoints whether the data are the same.
  TagSource(tag::WindowStream stream, Json state)
      : stream_(std::move(stream)), state_(std::move(state)) {}

  std::unique_ptr<training::HostBatch> make_batch() const override {
    auto batch = std::make_unique<TaggedBatch>();
    batch->batch.reserve(stream_.bounds());
    return batch;
  }
  void build(uint64_t first_sample, int64_t micro_step, training::HostBatch& batch) override {
    stream_.build(first_sample, micro_step, static_cast<TaggedBatch&>(batch).batch);
  }
  data::BatchBounds bounds() const override { return stream_.bounds(); }
  uint64_t samples_per_epoch() const override { return stream_.samples_per_epoch(); }
  Json position(uint64_t /*samples*/) override { return state_; }

 private:
  tag::WindowStream stream_;
  Json state_;
};

std::string listed(const std::vector<std::string>& labels) {
  const auto end =
      labels.begin() + static_cast<ptrdiff_t>(std::min(labels.size(), kMostLabelsShown));
  return fmt::format("{}{}", fmt::join(labels.begin(), end, ", "),
                     labels.size() > kMostLabelsShown ? ", ..." : "");
}

std::string counted(const tag::Sentences& sentences) {
  return fmt::format("{} sentences, {} words", sentences.all.size(), sentences.words());
}

}  // namespace

TagTask::TagTask(Context& context, const TagTrainingOptions& options,
                 comm::Communicator& communicator)
    : model_folder_(options.model),
      config_(parse_tag_recipe(options.recipe, options.recipe_place)) {
  const training::ModelDescription checkpoint =
      training::read_model_description(training::find_model_folder(options.model));
  description_ =
      with_recipe(config_.model, config_.max_sequence_length, config_.engine.place, checkpoint);
  description_.architecture = training::kTaggerArchitecture;
  description_.classifier.problem_type.clear();
  sentences_ = tag::read_sentences(options.train, config_.layout);
  scheme_ = config_.layout.scheme ? *config_.layout.scheme : tag::find_scheme(sentences_);
  choose_labels(checkpoint.classifier, checkpoint.architecture == training::kTaggerArchitecture);
  open_train_data(context.threads());
  choose_metric();
  if (!options.dev.empty()) open_dev_data(options.dev, context.threads());
  if (config_.engine.run.steps == 0) {
    decisions_.push_back(training::choose_steps(
        config_.engine, config_.epochs, encoded_->windows().size(), communicator.world_size()));
  }
}

void TagTask::choose_labels(const training::ClassifierDescription& checkpoint, bool is_tagger) {
  const bool are_given = !config_.labels.empty();
  if (are_given) {
    check_given_labels(config_.labels, 2, config_.engine.place, "tag.labels");
    tag::check_labels(config_.labels, scheme_, config_.engine.place + ": key `tag.labels`");
  }
  LabelChoice choice = tasks::choose_labels(are_given ? config_.labels : tag::find_tags(sentences_),
                                            are_given, checkpoint, is_tagger);
  description_.classifier.labels = std::move(choice.labels);
  keeps_head_ = choice.keeps_head;
  if (!choice.decision.empty()) decisions_.push_back(std::move(choice.decision));
}

void TagTask::open_train_data(int threads) {
  const std::vector<std::string>& labels = description_.classifier.labels;
  targets_ = tag::TagSet(labels).targets_of(sentences_, "add it to tag.labels");
  encoded_ = std::make_unique<tag::EncodedSentences>(
      sentences_.all, description_.vocabulary, description_.casing,
      tag::EncodeOptions{.max_sequence_length = config_.max_sequence_length,
                         .stride = stride_of(config_.stride, config_.max_sequence_length),
                         .threads = threads});
  data_rows_.push_back(
      {"training data", fmt::format("{}: {}, {} tags ({})", sentences_.source, counted(sentences_),
                                    labels.size(), listed(labels))});
  if (!config_.layout.scheme) {
    decisions_.push_back(scheme_ == Scheme::kPlain
                             ? "the tags are scored by accuracy: they are not those of entities"
                             : fmt::format("the tags are those of entities in the scheme {}",
                                           tag::name_of(scheme_)));
  }
  report(sentences_, *encoded_);
}

// What became of the data on their way to the model.
void TagTask::report(const tag::Sentences& sentences, const tag::EncodedSentences& encoded) {
  const auto say = [&](int64_t count, const std::string& what) {
    if (count > 0) decisions_.push_back(fmt::format("{}: {} {}", sentences.source, count, what));
  };
  say(sentences.rewritten,
      fmt::format("tags were rewritten in the scheme {}", tag::name_of(scheme_)));
  say(sentences.widened, "entities begin or end inside a word and were given all of it");
  say(encoded.split(), fmt::format("sentences are longer than {} tokens and are several sequences, "
                                   "each word predicted once (data.stride)",
                                   config_.max_sequence_length));
  say(encoded.cut_words(), "words have more pieces than a sequence, and the last were left out");
}

void TagTask::choose_metric() {
  const auto names = tag::metric_names(scheme_);
  const std::string wanted = config_.best_by.empty() ? names.front().name : config_.best_by;
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const auto& one) { return wanted == one.name; });
  require(found != names.end(), "{}: key `tag.best_by` is {}, which {} does not have: take {}",
          config_.engine.place, wanted,
          scheme_ == Scheme::kPlain ? "a file of plain tags" : "a file of entities",
          names.front().name);
  kept_by_ = {.metric = wanted, .smaller_is_better = found->smaller_is_better};
}

void TagTask::open_dev_data(const Path& dev, int threads) {
  dev_ = std::make_unique<TagDev>(dev, config_, description_, threads);
  const tag::Sentences& sentences = dev_->sentences();
  const tag::Scheme found = tag::find_scheme(sentences);
  const bool one_is_plain = found == tag::Scheme::kPlain || scheme_ == tag::Scheme::kPlain;
  require(one_is_plain || found == scheme_,
          "{}: its tags are written in {}, those of the training file in {}: set tag.scheme "
          "(--scheme {}), which rewrites both",
          sentences.source, tag::name_of(found), tag::name_of(scheme_), tag::name_of(scheme_));
  data_rows_.push_back({"judged on", fmt::format("{}: {}", sentences.source, counted(sentences))});
  report(sentences, dev_->encoded());
}

void TagTask::declare(params::Table& table) {
  model_ = std::make_unique<model::TaggingModel>(
      description_.config,
      model::TaggerHead{.outputs = static_cast<int64_t>(description_.classifier.labels.size()),
                        .dropout = description_.classifier.dropout},
      table);
}

std::unique_ptr<training::BatchSource> TagTask::open(const training::StreamShare& share,
                                                     const Json* saved) {
  const Json state = {{"sequences", encoded_->windows().size()},
                      {"labels", description_.classifier.labels},
                      {"data", tag::checksum(sentences_)}};
  if (saved != nullptr) {
    for (const char* key : {"labels", "sequences"}) {
      require(saved->at(key) == state.at(key),
              "{}: the run was started on other training data: it had the {} {}, {} has {}",
              config_.engine.place, key, saved->at(key).dump(), sentences_.source,
              state.at(key).dump());
    }
  }
  return std::make_unique<TagSource>(
      tag::WindowStream(*encoded_, targets_, share.dealt(), sentences_.source), state);
}

data::BatchBounds TagTask::evaluation_bounds() const {
  return dev_ ? dev_->bounds() : data::BatchBounds();
}

model::MemoryPlan TagTask::plan(Context& context, const model::BatchLimits& limits) {
  return model_->plan(context, limits, config_.model.memory, true);
}

std::string TagTask::fill(params::Table& table) {
  const uint64_t seed = config_.engine.run.seed;
  table.initialize(seed);
  const Path folder = training::find_model_folder(model_folder_);
  formats::MatchRules rules = {.may_lack = {"classifier."}, .may_ignore = kNotForTagging};
  if (!keeps_head_) rules.replaced = {"classifier."};
  training::load_values(table, folder, rules);
  return fmt::format("{}; tensors it lacks are drawn with seed {}", folder.string(), seed);
}

std::vector<std::string> TagTask::resume(const Json& client_state, const std::string& /*place*/) {
  if (client_state.at("data") == tag::checksum(sentences_)) return {};
  return {"changed: --train contains other words or tags"};
}

training::Sums TagTask::forward_backward(Context& context, const model::DeviceBatch& batch,
                                         const training::StepItems& items,
                                         const model::TrainingPass& pass) {
  const auto result = model_->forward_backward(context, batch, items.weight(items.items), pass);
  return {result.loss_sum, static_cast<double>(result.correct)};
}

training::StepMetrics TagTask::metrics(const training::StepSums& step) const {
  const auto words = static_cast<double>(step.items.items);
  const double epoch =
      static_cast<double>(step.samples) / static_cast<double>(encoded_->windows().size());
  return {.loss = step.sums[0] / words,
          .metrics = {{"epoch", epoch}, {"accuracy", step.sums[1] / words}}};
}

training::EvaluationTimes TagTask::evaluation_times() const {
  return {.by_steps = dev_ != nullptr, .by_epochs = dev_ != nullptr};
}

training::Evaluation TagTask::evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                       comm::Communicator& communicator) {
  const Stopwatch watch;
  training::Evaluation evaluation = {.key = "dev"};
  scores_ = dev_->evaluate(context, *model_, scheme_, buffer, communicator);
  evaluation.record = scores_.metrics;
  evaluation.record.push_back({"words", static_cast<double>(scores_.words), true});
  evaluation.metrics = evaluation.record;
  evaluation.metrics.push_back({"seconds", watch.seconds()});
  evaluation.line = describe(evaluation.record);
  return evaluation;
}

std::string TagTask::describe(const std::vector<metrics::Metric>& record) const {
  std::string text =
      fmt::format("{} {:.4f}", kept_by_.metric, metrics::value_of(record, kept_by_.metric));
  for (const metrics::Metric& metric : record) {
    if (metric.name == kept_by_.metric) continue;
    text += metric.is_count
                ? fmt::format(", {} {}", metric.name, static_cast<int64_t>(metric.value))
                : fmt::format(", {} {:.4f}", metric.name, metric.value);
  }
  return text;
}

void TagTask::write_beside_model(const Path& folder) const {
  Json scores = {{"file", dev_->sentences().source}};
  scores.update(tag::json_of(scores_));
  write_file_atomically(folder / kScoresFile, scores.dump(2) + "\n");
}

std::string TagTask::sequences() const {
  return fmt::format("sentences of at most {} tokens, without padding", encoded_->longest());
}

training::RunSummary run_tag_training(Context& context, const TagTrainingOptions& options,
                                      comm::Communicator& communicator) {
  training::check_run_folder(options.output, options.resume);
  TagTask task(context, options, communicator);
  return training::run_training(context, task, options, communicator);
}

}  // namespace onebit::tasks
