#include "onebit/apps/tag/prediction_file.h"

#include "onebit/apps/tag/tagger.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/prediction_scores.h"

namespace onebit::tag {
namespace {

constexpr const char* kHeader = "# global.columns = ID FORM START END PROBABILITY TAG\n\n";

// The positions of words in characters.
std::vector<Word> in_characters(const Sentence& sentence) {
  std::vector<Word> places;
  uint32_t byte = 0, character = 0;
  const auto character_at = [&](uint32_t wanted) {
    for (; byte < wanted; ++character) {
      byte += text::decode_utf8(std::string_view(sentence.text).substr(byte)).size_bytes;
    }
    return character;
  };
  for (const Word& word : sentence.words) {
    const uint32_t begin = character_at(word.begin);
    places.push_back({begin, character_at(word.end)});
  }
  return places;
}

std::string conll_text(const Sentence& sentence, const WordTags& predicted) {
  std::string text;
  const std::vector<Word> places = in_characters(sentence);
  for (size_t i = 0; i < places.size(); ++i) {
    text += fmt::format("{}\t{}\t{}\t{}\t{:.6f}\t{}\n", i + 1, sentence.word(i), places[i].begin,
                        places[i].end, predicted.probabilities[i], predicted.tags[i]);
  }
  return text + "\n";
}

Json entities_json(const Sentence& sentence, const WordTags& predicted,
                   const std::vector<Word>& places) {
  Json list = Json::array();
  for (const TaggedSpan& span : spans_of(sentence, predicted, SpanKind::kEntities)) {
    list.push_back({{"start", places[span.first].begin},
                    {"end", places[span.last].end},
                    {"label", span.label},
                    {"text", span.text},
                    {"probability", metrics::rounded(span.probability)}});
  }
  return list;
}

std::string json_line(const Sentence& sentence, const WordTags& predicted, bool has_entities) {
  const std::vector<Word> places = in_characters(sentence);
  Json line = {{"text", sentence.text},
               {"tokens", Json::array()},
               {"offsets", Json::array()},
               {"tags", predicted.tags},
               {"probabilities", Json::array()}};
  for (size_t i = 0; i < places.size(); ++i) {
    line["tokens"].push_back(sentence.word(i));
    line["offsets"].push_back({places[i].begin, places[i].end});
    line["probabilities"].push_back(metrics::rounded(predicted.probabilities[i]));
  }
  if (has_entities) line["entities"] = entities_json(sentence, predicted, places);
  return json_text(line) + "\n";
}

}  // namespace

PredictionFormat prediction_format_of(const Path& path) {
  for (const char* ending : {".conll", ".tsv", ".txt"}) {
    if (path.extension() == ending) return PredictionFormat::kConll;
  }
  if (path.extension() == ".jsonl") return PredictionFormat::kJsonLines;
  fail("{}: predictions are written as .conll or .jsonl; give the file one of these endings",
       path.string());
}

PredictionFile::PredictionFile(const Path& path, Options options)
    : options_(std::move(options)), file_(path) {
  if (options_.format != PredictionFormat::kConll) return;
  for (const std::string& label : options_.labels) {
    require(!label.empty() && label.find_first_of("\t\r\n") == std::string::npos,
            "{}: the model's label {} is empty or contains a tab or a line end, which a column "
            "cannot: write predictions as .jsonl",
            path.string(), json_text(label));
  }
  file_.write(std::string_view(kHeader));
}

void PredictionFile::add(const Sentence& sentence, std::span<const float> outputs) {
  ONEBIT_INVARIANT(outputs.size() == sentence.words.size() * options_.labels.size());
  const WordTags predicted = word_tags(outputs, options_.labels);
  file_.write(options_.format == PredictionFormat::kConll
                  ? conll_text(sentence, predicted)
                  : json_line(sentence, predicted, options_.has_entities));
  ++sentences_;
  words_ += static_cast<int64_t>(sentence.words.size());
}

void PredictionFile::finish() {
  file_.finish();
}

}  // namespace onebit::tag
