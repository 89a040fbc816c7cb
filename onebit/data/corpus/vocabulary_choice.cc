#include "onebit/data/corpus/vocabulary_choice.h"

#include "onebit/data/corpus/ordered_pipeline.h"
#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/sentence_reader.h"
#include "onebit/data/corpus/text_source.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary_trainer.h"
#include "onebit/ground/base/error.h"

namespace onebit::corpus {
namespace {

ChosenVocabulary with_evident_casing(const PrepareOptions& options,
                                     std::shared_ptr<const text::Vocabulary> vocabulary,
                                     const std::string& path) {
  ChosenVocabulary chosen;
  chosen.vocabulary = std::move(vocabulary);
  const text::Casing found = text::casing_of(*chosen.vocabulary) == text::CasingEvidence::kCased
                                 ? text::Casing::kCased
                                 : text::Casing::kUncased;
  if (!options.casing) {
    chosen.casing = found;
    chosen.decisions.push_back(
        fmt::format("casing: {}, as {} words in {} have capitals", name_of(found),
                    found == text::Casing::kCased ? "many" : "few or no", path));
    return chosen;
  }
  // The opposite is valid: a vocabulary for cased text may lack capitals.
  require(!(found == text::Casing::kCased && options.casing == text::Casing::kUncased),
          "{}: has words with capitals, which uncased text never contains: use --cased or another "
          "vocabulary",
          path);
  chosen.casing = *options.casing;
  return chosen;
}

ChosenVocabulary of_model(const PrepareOptions& options, const ModelVocabulary& model) {
  if (model.tokens->pipeline()) {
    require(!options.casing,
            "{}: its tokenizer is no WordPiece and has rules of its own for capitals and accents: "
            "remove --{}",
            model.place, name_of(options.casing.value_or(text::Casing::kCased)));
    return {.vocabulary = model.tokens,
            .casing = text::Casing::kCased,
            .decisions = {fmt::format("vocabulary: the {} tokens of {}, whose tokenizer has rules "
                                      "of its own",
                                      model.tokens->size(), model.place)}};
  }
  if (!model.casing) return with_evident_casing(options, model.tokens, model.place);
  require(!options.casing || *options.casing == *model.casing,
          "{}: the model's text is {}, but --{} was given: remove the option; the casing must "
          "match the model's training",
          model.place, name_of(*model.casing), name_of(options.casing.value_or(*model.casing)));
  ChosenVocabulary chosen;
  chosen.vocabulary = model.tokens;
  chosen.casing = *model.casing;
  chosen.decisions.push_back(fmt::format("vocabulary: the {} tokens of {}, {}",
                                         model.tokens->size(), model.place,
                                         name_of(*model.casing)));
  return chosen;
}

void add_text(const TextBlock& block, LeftOut rule, text::VocabularyTrainer& trainer) {
  const bool is_jsonl = block.format == TextFormat::kJsonl;
  if (!is_jsonl || rule != LeftOut::kBad) check_utf8(block);
  if (!is_jsonl) return trainer.add_text(block.text);
  LeftOutRecords left_out(rule);  // reported when the same text is tokenized
  for_each_json_text(block, left_out, [&](std::string_view text) { trainer.add_text(text); });
}

std::vector<std::string> learn_tokens(const PrepareOptions& options, text::Casing casing,
                                      const std::vector<InputFile>& files) {
  std::vector<text::VocabularyTrainer> trainers;
  for (int i = 0; i < options.threads; ++i) trainers.emplace_back(casing);
  TextSource source(files, options.format);
  ProgressMeter meter("learning the vocabulary", source.total_bytes(), options.progress);
  uint64_t text_bytes = 0, consumed_bytes = 0;
  OrderedPipeline<TextBlock, uint64_t>(options.threads)
      .run(
          [&](TextBlock& block) {
            const bool got = source.read(block);
            consumed_bytes = source.consumed_bytes();
            return got;
          },
          [&](int thread, TextBlock& block) {
            add_text(block, options.left_out, trainers[thread]);
            return static_cast<uint64_t>(block.text.size());
          },
          [&](uint64_t size_bytes) {
            text_bytes += size_bytes;
            meter.update(std::min(source.total_bytes(), text_bytes), text_bytes);
          });
  meter.finish(consumed_bytes, text_bytes);
  for (size_t i = 1; i < trainers.size(); ++i) trainers[0].merge(trainers[i]);
  return trainers[0].train(*options.vocabulary_size, options.threads);
}

}  // namespace

ChosenVocabulary choose_vocabulary(const PrepareOptions& options,
                                   const std::vector<InputFile>& files) {
  if (options.vocabulary) {
    return with_evident_casing(
        options,
        std::make_shared<const text::Vocabulary>(text::Vocabulary::load(*options.vocabulary)),
        options.vocabulary->string());
  }
  if (options.model_vocabulary) return of_model(options, *options.model_vocabulary);
  ChosenVocabulary chosen;
  chosen.casing = options.casing.value_or(text::Casing::kUncased);
  const auto size = static_cast<size_t>(*options.vocabulary_size);
  std::vector<std::string> tokens = learn_tokens(options, chosen.casing, files);
  chosen.decisions.push_back(
      tokens.size() < size
          ? fmt::format("vocabulary: {} tokens learned, {}; the text yields no more ({} requested)",
                        tokens.size(), name_of(chosen.casing), size)
          : fmt::format("vocabulary: {} tokens learned, {}", size, name_of(chosen.casing)));
  chosen.vocabulary = std::make_shared<const text::Vocabulary>(
      text::Vocabulary::from_tokens(std::move(tokens), "the learned vocabulary"));
  return chosen;
}

}  // namespace onebit::corpus
