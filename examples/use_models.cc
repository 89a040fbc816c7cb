// Uses models of onebit in a program of your own: each is a run, a checkpoint or a model folder.
//
//   build/examples/use_models vectors  FOLDER TEXT...       a vector a line
//   build/examples/use_models labels   FOLDER TEXT...       the label of each, and its probability
//   build/examples/use_models entities FOLDER TEXT...       names, their types and probabilities
//   build/examples/use_models answer   FOLDER QUESTION TEXT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/classify/classifier.h"
#include "onebit/apps/embed/encoder.h"
#include "onebit/apps/squad/answerer.h"
#include "onebit/apps/tag/tagger.h"

using namespace onebit;

namespace {

void print_vectors(const std::string& folder, const std::vector<std::string>& texts) {
  embed::Encoder encoder(folder);
  const std::vector<float> vectors = encoder.vectors(texts);
  const auto numbers = static_cast<size_t>(encoder.dimensions());
  for (size_t first = 0; first < vectors.size(); first += numbers) {
    fmt::print("{}\n", fmt::join(std::span(vectors).subspan(first, numbers), " "));
  }
}

void print_labels(const std::string& folder, const std::vector<std::string>& texts) {
  classify::Classifier classifier(folder);
  for (const classify::Prediction& one : classifier.predict(texts)) {
    fmt::print("{}\t{:.6f}\n", fmt::join(one.labels, ","),
               *std::max_element(one.probabilities.begin(), one.probabilities.end()));
  }
}

void print_entities(const std::string& folder, const std::vector<std::string>& texts) {
  tag::Tagger tagger(folder);
  for (const std::string& text : texts) {
    for (const tag::TaggedSpan& one : tagger.spans(text)) {
      fmt::print("{}\t{}\t{:.6f}\n", one.text, one.label, one.probability);
    }
  }
}

void print_answer(const std::string& folder, const std::string& question, const std::string& text) {
  squad::Answerer answerer(folder);
  const squad::DecodedAnswer given = answerer.answer({.question = question, .context = text});
  fmt::print("{}\n", given.text.empty() ? "(no answer)" : given.text);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() < 4) {
    fmt::print(stderr, "usage: use_models vectors|labels|entities|answer FOLDER TEXT...\n");
    return 2;
  }
  const std::vector<std::string> texts(words.begin() + 3, words.end());
  try {
    if (words[1] == "vectors") print_vectors(words[2], texts);
    if (words[1] == "labels") print_labels(words[2], texts);
    if (words[1] == "entities") print_entities(words[2], texts);
    if (words[1] == "answer") print_answer(words[2], texts.front(), texts.back());
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
