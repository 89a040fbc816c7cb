// The data of a pre-training run: stores, the stream of batches, the held-out stream.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/data/batches/batch_stream.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/training/finetune/model_vocabulary.h"
#include "onebit/training/training/task.h"

namespace onebit::pretrain {

using Stores = std::vector<batches::WeightedStore>;

// Opens every folder, a token store or a sample store. Errors: no folder given, or a damaged store.
Stores open_stores(const std::vector<std::pair<Path, double>>& folders);

// Error: the store's samples are pairs, and the model has too few token types (`segments`).
void require_segments(const corpus::Store& store, int64_t segments);

// Rows of the start table: path and size of each store, and its weight.
std::vector<std::pair<std::string, std::string>> describe_stores(const Stores& stores);

// The checksum of a store's tokens and, if pairs and masks are third-party, of these.
uint32_t checksum_of(const corpus::Store& store);

// The identity of stores: tokens, checksum and weight of each.
Json stores_to_json(const Stores& stores);

// Whether the checkpoint's client state is of a run with these stores: tokens, sentences, documents
// and weights.
bool are_those_of(const Json& client_state, const Stores& stores);

// Whether the checkpoint's examples were cut by a version that reads sentences longer than a
// sequence in pieces.
bool cuts_long_sentences(const Json& client_state);

// The marks of a stream with `options`, for the client state, and back. They are empty if the state
// is older or of other stores, seed or pairs. The stream then finds its position by cutting every
// epoch again.
Json marks_to_json(const std::vector<batches::EpochMark>& marks, const Stores& stores,
                   const batches::BatchStreamOptions& options);
std::vector<batches::EpochMark> marks_of(const Json& client_state, const Stores& stores,
                                         const batches::BatchStreamOptions& options);

batches::BatchStreamOptions stream_options(const PretrainingConfig& config,
                                           const training::StreamShare& share);

// The held-out pairs and masks are the same in every run, whatever its seed, so that runs can be
// compared.
batches::EvaluationOptions held_out_options(const comm::Communicator& communicator, int threads);

// Errors: another vocabulary or casing than the owner's, and the errors of batches::open_source().
std::unique_ptr<batches::EvaluationStream> open_held_out(
    const std::shared_ptr<const corpus::Store>& store, const finetune::VocabularyOwner& owner,
    const batches::EvaluationOptions& options);

}  // namespace onebit::pretrain
