#include "onebit/apps/pretrain/epoch_check.h"

#include <algorithm>
#include <optional>

#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"

namespace onebit::pretrain {
namespace {

using batches::EpochFigures;

constexpr double kReadShare = 0.9;              // of the tokens
constexpr double kContinuingShare = 0.1;        // of the samples. Half of them is usual
constexpr uint64_t kPartsOfOnlyDocument = 100;  // with fewer, 1 % of the random texts continue

constexpr const char* kFix = "set data.next_sentence to false (evaluate: --no-next-sentence)";

double percent(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

bool has_one_document(const corpus::Store& store) {
  const auto* tokens = dynamic_cast<const corpus::TokenStore*>(&store);
  return tokens != nullptr && tokens->documents() == 1;
}

// Why no second text continues its first, or all do.
std::string cause_of_constant(const corpus::Store& store, const EpochFigures& figures,
                              const batches::PairOptions& pairs) {
  const auto* tokens = dynamic_cast<const corpus::TokenStore*>(&store);
  if (tokens == nullptr) {
    return fmt::format("the next-sentence labels of its {} samples are all {}", figures.examples,
                       figures.continue_text == 0 ? 1 : 0);
  }
  if (tokens->documents() == tokens->sentences()) {
    return fmt::format(
        "each of its {} documents is one sentence, so no second text continues its "
        "first and all next-sentence labels are 1 (random)",
        tokens->documents());
  }
  return fmt::format(
      "its sentences leave no room for a second one in sequences of {}, so all "
      "next-sentence labels are 1 (random)",
      pairs.sequence_length);
}

// The labels of a sample store are fixed. The labels of a token store are drawn, so a few of them
// may be equal by chance.
bool is_constant(const corpus::Store& store, const EpochFigures& figures) {
  const bool drawn = dynamic_cast<const corpus::TokenStore*>(&store) != nullptr;
  return figures.could_continue == 0 || (!drawn && figures.continue_text == figures.examples);
}

std::string text_of_few(const corpus::Store& store, const EpochFigures& figures,
                        const batches::PairOptions& pairs) {
  if (is_constant(store, figures)) return cause_of_constant(store, figures, pairs);
  return fmt::format("only {:.1f} % of its samples have a second text that continues the first",
                     percent(figures.continue_text, figures.examples));
}

std::optional<std::string> warning_of_reading(const corpus::Store& store,
                                              const EpochFigures& figures,
                                              const batches::PairOptions& pairs) {
  if (figures.read_share() >= kReadShare) return std::nullopt;
  return fmt::format(
      "{}: an epoch reads {:.1f} % of its tokens: where a sentence overflows a sequence of {}, the "
      "rest is truncated, at other places in every epoch; a longer data.sequence_length, or text "
      "split into shorter sentences, loses less",
      store.folder().string(), 100 * figures.read_share(), pairs.sequence_length);
}

void add_label_warnings(const corpus::Store& store, const EpochFigures& figures,
                        const batches::PairOptions& pairs, const char* consequence,
                        std::vector<std::string>& warnings) {
  if (!pairs.next_sentence) return;
  const double share = percent(figures.continue_text, figures.examples) / 100;
  if (share < kContinuingShare || is_constant(store, figures)) {
    warnings.push_back(fmt::format("{}: {}: {}; {}", store.folder().string(),
                                   text_of_few(store, figures, pairs), consequence, kFix));
  }
  if (has_one_document(store)) {
    warnings.push_back(fmt::format(
        "{}: is one document, so a random second text is another place of the same document, and "
        "may be the true continuation; {}, or prepare the text as several documents",
        store.folder().string(), kFix));
  }
}

}  // namespace

std::string describe_epoch(const std::vector<EpochFigures>& figures) {
  EpochFigures all;
  for (const EpochFigures& each : figures) all.add(each);
  std::string text =
      fmt::format("{} samples with {:.1f} % of the tokens", all.examples, 100 * all.read_share());
  if (all.cut_tokens > 0) {
    text += fmt::format("; sentences longer than a sequence, {:.1f} % of the tokens, in pieces",
                        percent(all.cut_tokens, all.tokens));
  }
  if (all.continue_text > 0) {
    text += fmt::format("; {:.0f} % of the second texts continue the first",
                        percent(all.continue_text, all.examples));
  }
  return text;
}

void require_useful_labels(const Stores& stores, const std::vector<EpochFigures>& figures,
                           const batches::PairOptions& pairs) {
  ONEBIT_INVARIANT(stores.size() == figures.size());
  if (!pairs.next_sentence) return;
  EpochFigures all;
  bool all_constant = true;
  for (size_t i = 0; i < stores.size(); ++i) {
    all.add(figures[i]);
    all_constant = all_constant && is_constant(*stores[i].store, figures[i]);
  }
  if (all_constant && (all.continue_text == 0 || all.continue_text == all.examples)) {
    const corpus::Store& store = *stores.front().store;
    fail(
        "{}: {}, and a head would learn a constant: {}, or give text whose documents have several "
        "sentences",
        store.folder().string(), cause_of_constant(store, figures.front(), pairs), kFix);
  }
  for (size_t i = 0; i < stores.size(); ++i) {
    const corpus::Store& store = *stores[i].store;
    require(
        !has_one_document(store) || figures[i].parts >= kPartsOfOnlyDocument,
        "{}: is one document of {} sentences, so the random second text is of the same "
        "document, and about 1 in {} is the true continuation under the label \"random\": {}, or "
        "prepare the text as several documents (for example with blank lines between them)",
        store.folder().string(), figures[i].parts, figures[i].parts, kFix);
  }
}

std::vector<std::string> warnings_of_training(const Stores& stores,
                                              const std::vector<EpochFigures>& figures,
                                              const batches::PairOptions& pairs) {
  ONEBIT_INVARIANT(stores.size() == figures.size());
  std::vector<std::string> warnings;
  for (size_t i = 0; i < stores.size(); ++i) {
    const corpus::Store& store = *stores[i].store;
    add_label_warnings(store, figures[i], pairs, "there is little to learn from the labels",
                       warnings);
    if (const auto warning = warning_of_reading(store, figures[i], pairs))
      warnings.push_back(*warning);
  }
  return warnings;
}

std::vector<std::string> warnings_of_held_out(const corpus::Store& store,
                                              const EpochFigures& figures,
                                              const batches::PairOptions& pairs) {
  std::vector<std::string> warnings;
  add_label_warnings(store, figures, pairs,
                     "its next-sentence loss and accuracy say little about the model", warnings);
  return warnings;
}

void warn_of_held_out(const corpus::Store& store, const batches::EvaluationStream& stream,
                      const batches::PairOptions& pairs) {
  for (const std::string& warning : warnings_of_held_out(store, stream.figures(), pairs)) {
    log_warning("{}", warning);
  }
}

}  // namespace onebit::pretrain
