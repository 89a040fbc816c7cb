// Collectives on top of those of Communicator: over long buffers in host memory, of texts, of
// work that may fail on some ranks, and of the values of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::comm {

// Over long buffers. Every rank computes one chunk and sends the result to the others, so each rank
// sends about twice the buffer for any number of ranks. The collectives of Communicator send it to
// every other rank.

// The chunk that a rank computes.
Range equal_chunk(int64_t elements, int world_size, int rank);

// Every rank ends with the chunks of all ranks. Each contributes its own, at its place in `values`.
void gather_chunks(Communicator& communicator, std::span<float> values);

// Every rank ends with a copy of the bytes of `root`.
void broadcast_in_chunks(Communicator& communicator, std::span<std::byte> bytes, int root);

// Every rank ends with the sums over ranks, added in rank order: bit-identical to all_reduce().
void sum_in_chunks(Communicator& communicator, std::span<float> values);

// Every rank ends with the bitwise OR over ranks.
void unite_in_chunks(Communicator& communicator, std::span<uint8_t> flags);

// The texts of all ranks, in rank order. Collective.
std::vector<std::string> gather_texts(Communicator& communicator, const std::string& mine);

// Runs `work`. Afterwards every rank knows whether all of them succeeded. If not, every rank throws
// the error of the lowest rank that failed, prefixed by `what` ("checkpoint not written").
// Collective.
void run_on_all(Communicator& communicator, const char* what, const std::function<void()>& work);

// Whether all ranks have the same values, which every update keeps so: compares a hash of them.
// Collective. The result is equal on all ranks.
bool replicas_agree(const ParameterTable& table, Communicator& communicator);
// Gives every rank the values of rank 0. Ranks that have them already send a hash only. Collective.
void broadcast_values(ParameterTable& table, Communicator& communicator);

}  // namespace onebit::comm
