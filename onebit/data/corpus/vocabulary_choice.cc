#include "onebit/data/corpus/vocabulary_choice.h"

#include "onebit/data/corpus/ordered_pipeline.h"
#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/sentence_reader.h"
#include "onebit/data/corpus/text_source.h"
#include "onebit/data/corpus/tokenizer_trainer.h"
#include "onebit/data/corpus/vocabulary_trainer.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
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

template <typename Trainer>
void add_text(const TextBlock& block, LeftOut rule, Trainer& trainer) {
  const bool is_jsonl = block.format == TextFormat::kJsonl;
  if (!is_jsonl || rule != LeftOut::kBad) check_utf8(block);
  if (!is_jsonl) return trainer.add_text(block.text);
  LeftOutRecords left_out(rule);  // reported when the same text is tokenized
  for_each_json_text(block, left_out, [&](std::string_view text) { trainer.add_text(text); });
}

// Reads the text with one trainer a thread. Returns one that knows all of it.
template <typename Make>
auto read_words(const PrepareOptions& options, const Make& make_trainer,
                const std::vector<InputFile>& files) {
  std::vector<decltype(make_trainer())> trainers;
  for (int i = 0; i < options.threads; ++i) trainers.push_back(make_trainer());
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
  return std::move(trainers[0]);
}

text::Vocabulary learned(const PrepareOptions& options, text::Casing casing,
                         const std::vector<InputFile>& files, const Path& folder) {
  const int32_t size = *options.vocabulary_size;
  if (options.vocabulary_kind == VocabularyKind::kWordPiece) {
    const auto trainer = read_words(
        options, [&] { return VocabularyTrainer(casing); }, files);
    return text::Vocabulary::from_tokens(trainer.train(size, options.threads),
                                         "the learned vocabulary");
  }
  const auto trainer = read_words(
      options, [&] { return TokenizerTrainer(options.vocabulary_kind, casing); }, files);
  const Path path = folder / formats::kTokenizerJson;
  write_file_atomically(path, trainer.train(size, options.threads));
  write_file_atomically(folder / formats::kTokenizerConfigJson, trained_tokenizer_config());
  return text::Vocabulary::from_parts(formats::read_tokenizer_with(path).vocabulary, path.string());
}

}  // namespace

ChosenVocabulary choose_vocabulary(const PrepareOptions& options,
                                   const std::vector<InputFile>& files, const Path& folder) {
  if (options.vocabulary) {
    return with_evident_casing(
        options,
        std::make_shared<const text::Vocabulary>(text::Vocabulary::load(*options.vocabulary)),
        options.vocabulary->string());
  }
  if (options.model_vocabulary) return of_model(options, *options.model_vocabulary);
  const bool is_word_piece = options.vocabulary_kind == VocabularyKind::kWordPiece;
  const text::Casing casing =
      options.casing.value_or(is_word_piece ? text::Casing::kUncased : text::Casing::kCased);
  ChosenVocabulary chosen;
  // Other tokenizers do themselves what `casing` says.
  chosen.casing = is_word_piece ? casing : text::Casing::kCased;
  chosen.vocabulary =
      std::make_shared<const text::Vocabulary>(learned(options, casing, files, folder));
  const int32_t size = chosen.vocabulary->size(), wanted = *options.vocabulary_size;
  chosen.decisions.push_back(
      size < wanted
          ? fmt::format("vocabulary: {} tokens learned, {}; the text yields no more ({} requested)",
                        size, name_of(casing), wanted)
          : fmt::format("vocabulary: {} tokens learned, {}", size, name_of(casing)));
  return chosen;
}

}  // namespace onebit::corpus
