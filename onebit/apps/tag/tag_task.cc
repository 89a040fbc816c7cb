#include "onebit/apps/tag/tag_task.h"

#include <algorithm>
#include <utility>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/apps/tag/tagger.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/wording.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"
#include "onebit/training/finetune/fine_tuning_task.h"

namespace onebit::tag {
namespace {

std::string counted(const Sentences& sentences) {
  return fmt::format("{} sentences, {} words", sentences.all.size(), sentences.words());
}

}  // namespace

TagTask::TagTask(Context& context, const finetune::FineTuningOptions& options,
                 const training::Connection& connection)
    : FineTuningTask(options.model, parse_tag_recipe(options.recipe)) {
  const training::ModelDescription checkpoint =
      training::read_model_description(training::find_model_folder(options.model));
  description_ = finetune::with_recipe(config_, checkpoint);
  config_.max_sequence_length = finetune::fitting_length(config_, config_.max_sequence_length,
                                                         description_, facts_.decisions);
  description_.architecture = model::kTaggerArchitecture;
  description_.classifier.problem_type.clear();
  name_tags(checkpoint);
  config_.layout.added_tokens =
      text::AddedTokenFinder::of(*description_.vocabulary, description_.casing);
  sentences_ = tag::read_sentences(options.train, config_.layout);
  scheme_ = config_.layout.scheme ? *config_.layout.scheme : tag::find_scheme(sentences_);
  choose_labels(checkpoint.classifier, checkpoint.architecture == model::kTaggerArchitecture);
  open_train_data(context.threads());
  choose_metric();
  if (!options.dev.empty()) open_dev_data(options.dev, context.threads());
  facts_.name = kTagTask;
  facts_.use = "onebit tag predict --model {} --input FILE --output FILE";
  facts_.counts_items = true;  // words
  facts_.sequences =
      fmt::format("sentences of at most {} tokens, without padding", encoded_->longest());
  choose_steps(encoded_->windows().size(), open_ranks(connection).world_size());
}

// Whole numbers in JSON lines are tags by their place in the labels.
void TagTask::name_tags(const training::ModelDescription& checkpoint) {
  if (!config_.labels.empty()) {
    config_.layout.tag_names = config_.labels;
  } else if (checkpoint.architecture == model::kTaggerArchitecture) {
    config_.layout.tag_names = checkpoint.classifier.labels;
  }
}

void TagTask::choose_labels(const training::ClassifierDescription& checkpoint, bool is_tagger) {
  const bool are_given = !config_.labels.empty();
  if (are_given) {
    finetune::check_given_labels(config_.labels, 2, config_.engine.place, "tag.labels");
    tag::check_labels(config_.labels, scheme_, config_.engine.place + ": key `tag.labels`");
  }
  finetune::LabelChoice choice = finetune::choose_labels(
      are_given ? config_.labels : tag::find_tags(sentences_), are_given, checkpoint, is_tagger);
  description_.classifier.labels = std::move(choice.labels);
  keeps_head_ = choice.keeps_head;
  if (!choice.decision.empty()) facts_.decisions.push_back(std::move(choice.decision));
}

void TagTask::open_train_data(int threads) {
  const std::vector<std::string>& labels = description_.classifier.labels;
  targets_ = TagSet(labels).targets_of(sentences_, "add it to tag.labels");
  encoded_ = std::make_unique<EncodedSentences>(encoded(sentences_, threads));
  facts_.data_rows.push_back(
      {"training data", fmt::format("{}: {}, {} tags ({})", sentences_.source, counted(sentences_),
                                    labels.size(), listed(labels, finetune::kMaxLabelsShown))});
  const bool are_numbers = std::all_of(labels.begin(), labels.end(), [](const std::string& label) {
    return whole_number<int64_t>(label).has_value();
  });
  if (are_numbers) {
    facts_.decisions.emplace_back(
        "the tags are whole numbers: if they stand for tags of entities, give these in tag.labels, "
        "in the order of the numbers");
  } else if (!config_.layout.scheme) {
    facts_.decisions.push_back(
        scheme_ == Scheme::kPlain
            ? "the tags are scored by accuracy: they are not those of entities"
            : fmt::format("the tags are those of entities in the scheme {}",
                          tag::name_of(scheme_)));
  }
  report(sentences_, *encoded_);
}

EncodedSentences TagTask::encoded(const Sentences& sentences, int threads) const {
  return {sentences.all,
          description_.vocabulary,
          description_.casing,
          {.max_sequence_length = config_.max_sequence_length,
           .stride = stride_of(config_.stride, config_.max_sequence_length),
           .threads = threads}};
}

// Reports how the data were changed on their way to the model.
void TagTask::report(const Sentences& sentences, const EncodedSentences& encoded) {
  const auto say = [&](int64_t count, const std::string& what) {
    if (count > 0)
      facts_.decisions.push_back(fmt::format("{}: {} {}", sentences.source, count, what));
  };
  for (const std::string& note : sentences.notes) {
    facts_.decisions.push_back(fmt::format("{}: {}", sentences.source, note));
  }
  say(sentences.rewritten,
      fmt::format("tags were rewritten in the scheme {}", tag::name_of(scheme_)));
  say(sentences.widened, "entities begin or end inside a word and were extended to all of it");
  say(encoded.split(),
      fmt::format("sentences are longer than {} tokens and were split into several sequences, "
                  "each word predicted once (data.stride)",
                  config_.max_sequence_length));
  say(encoded.cut_words(), "words have more pieces than a sequence, and the last were left out");
}

void TagTask::choose_metric() {
  const auto names = tag::metric_names(scheme_);
  const auto found = training::find_kept_by(names, config_.best_by);
  require(found.has_value(), "{}: key `tag.best_by` is {}, which {} does not have: use {}",
          config_.engine.place, config_.best_by,
          scheme_ == Scheme::kPlain ? "a file of plain tags" : "a file of entities",
          names.front().name);
  facts_.kept_by = *found;
}

void TagTask::open_dev_data(const Path& dev, int threads) {
  Sentences sentences = tag::read_sentences(dev, config_.layout);
  EvaluationTargets targets =
      TagSet(description_.classifier.labels)
          .evaluation_targets(
              sentences, scheme_,
              "tags of entities in another scheme are rewritten where tag.scheme is set");
  // Plain tags have no scheme that their spelling could contradict.
  const Scheme found = scheme_ == Scheme::kPlain ? Scheme::kPlain : tag::find_scheme(sentences);
  const bool one_is_plain = found == Scheme::kPlain || scheme_ == Scheme::kPlain;
  require(one_is_plain || found == scheme_,
          "{}: its tags are written in {}, those of the training file in {}: set tag.scheme "
          "(tag.scheme {}), which rewrites both",
          sentences.source, tag::name_of(found), tag::name_of(scheme_), tag::name_of(scheme_));
  EncodedSentences windows = encoded(sentences, threads);
  add_dev_file(sentences.source, counted(sentences), bounds_of(windows, config_.prediction_batch),
               tag::checksum(sentences));
  report(sentences, windows);
  const std::string unknown_tags = targets.warning(sentences.source);
  if (!unknown_tags.empty()) facts_.decisions.push_back(unknown_tags);
  dev_ = std::make_unique<Dev>(Dev{std::move(sentences), std::move(targets), std::move(windows)});
}

void TagTask::declare(ParameterTable& table) {
  model_ = std::make_unique<TaggingModel>(
      description_.config,
      TaggerHead{.outputs = static_cast<int64_t>(description_.classifier.labels.size()),
                 .dropout = description_.classifier.dropout},
      table);
}

finetune::DataIdentity TagTask::identity() const {
  return {{{"labels", description_.classifier.labels},
           {"sequences", encoded_->windows().size()},
           {"data", tag::checksum(sentences_)}},
          sentences_.source,
          "words or tags"};
}

std::unique_ptr<training::BatchSource> TagTask::make_source(const training::StreamShare& share,
                                                            Json identity) {
  return std::make_unique<finetune::ItemSource<WindowStream>>(
      WindowStream(*encoded_, targets_, share, sentences_.source), std::move(identity));
}

std::string TagTask::fill(ParameterTable& table) {
  finetune::InitialValues first = {
      .model = model_folder_,
      .heads = finetune::heads_of_tokens(description_.config, model::kClassifierHead),
      .seed = config_.engine.run.seed};
  if (!keeps_head_) first.replaced = {model::kClassifierHead};
  return finetune::fill_from_model(table, first);
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

training::Evaluation TagTask::evaluate(Context& context, training::DeviceBatchBuffer& buffer,
                                       comm::Communicator& communicator) {
  const Stopwatch watch;
  const std::vector<float> outputs = predict_words(context, *model_, dev_->encoded,
                                                   config_.prediction_batch, buffer, communicator);
  scores_ = tag::score({.sentences = dev_->sentences,
                        .targets = dev_->targets.targets,
                        .labels = description_.classifier.labels,
                        .outputs = outputs},
                       scheme_);
  std::vector<metrics::Metric> record = scores_.metrics;
  record.push_back({"words", static_cast<double>(scores_.words), true});
  return evaluation_of(std::move(record), watch);
}

void TagTask::write_beside_model(const Path& folder) const {
  Json scores = {{"file", dev_->sentences.source}};
  scores.update(tag::json_of(scores_));
  write_scores(folder, scores);
}

std::unique_ptr<training::Task> make_tag_task(Context& context, const training::RunOptions& run,
                                              const training::TaskInputs& inputs,
                                              const training::Connection& connection) {
  return std::make_unique<TagTask>(context, finetune::options_of(run, inputs), connection);
}

}  // namespace onebit::tag
