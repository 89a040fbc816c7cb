// Whether pre-training on stores makes sense: how much of their text an epoch reads, and whether
// next-sentence labels can be learned. What is found here would otherwise degrade a run in silence.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/apps/pretrain/pretraining_data.h"
#include "onebit/data/batches/example_source.h"
#include "onebit/data/batches/pair_options.h"
#include "onebit/data/corpus/store.h"

namespace onebit::pretrain {

// For the start table: what an epoch of the stores reads, with one entry of `figures` for each.
std::string describe_epoch(const std::vector<batches::EpochFigures>& figures);

// Error: with next_sentence, the labels of all stores together are a constant, or a store's are
// mostly wrong, since its only document is so short that a random second text is often the true
// continuation.
void require_useful_labels(const Stores& stores, const std::vector<batches::EpochFigures>& figures,
                           const batches::PairOptions& pairs);

// What is not an error, one sentence each: labels that are rarely a continuation, random texts of
// the only document, text that an epoch does not read.
std::vector<std::string> warnings_of_training(const Stores& stores,
                                              const std::vector<batches::EpochFigures>& figures,
                                              const batches::PairOptions& pairs);

// The same for the labels of held-out data. They decide nothing, so a constant is a warning here:
// the figures of next-sentence prediction mean nothing then.
std::vector<std::string> warnings_of_held_out(const corpus::Store& store,
                                              const batches::EpochFigures& figures,
                                              const batches::PairOptions& pairs);
// Logs them.
void warn_of_held_out(const corpus::Store& store, const batches::EvaluationStream& stream,
                      const batches::PairOptions& pairs);

}  // namespace onebit::pretrain
