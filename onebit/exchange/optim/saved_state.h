// The state of an optimizer in a checkpoint: the optimizer's name, and buffers that each belong to
// one rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/compress/owned_pieces.h"
#include "onebit/math/tensor/state.h"

namespace onebit::optim {

void save_state_name(StateWriter&, const std::string& name);
// Error, with both names: the state belongs to another optimizer.
void check_state_name(const StateReader&, const std::string& name);

// How the ranks that saved had divided their exchange of `elements`, as written by SignExchange.
compress::Ownership saved_ownership(const StateReader&, int64_t elements);

// If the number of sources is the same as when saved, each of these functions reads and sends about
// as much as the buffer of one rank. Error: a saved buffer does not have the number of elements
// that this model needs.

// The buffer `name` f32 [elements] that `rank` saved.
std::vector<float> own_buffer(const StateReader& reader, const std::string& name, int rank,
                              int64_t elements);

// For each rank the elements `wanted` of its source, from the buffers `name` that sources saved
// under `before`.
std::vector<float> source_buffer(const StateReader& reader, const compress::Ownership& before,
                                 const std::string& name, int source,
                                 std::span<const compress::OwnedRange> wanted);

// The mean over all sources that saved, the same on every rank of `communicator`, all of which want
// the same elements: each reads a chunk of every buffer and sends its mean to the others.
// Collective.
std::vector<float> mean_source_buffer(const StateReader& reader, comm::Communicator& communicator,
                                      const compress::Ownership& before, const std::string& name,
                                      std::span<const compress::OwnedRange> wanted);

// The elements that `rank` owns under `now`, read from the buffers `name` that owners saved under
// `before`.
std::vector<float> owned_buffer(const StateReader& reader, const std::string& name,
                                const compress::Ownership& before, const compress::Ownership& now,
                                int rank);

}  // namespace onebit::optim
