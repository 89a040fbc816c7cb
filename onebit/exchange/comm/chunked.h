// Collectives over long buffers in host memory. Every rank computes one chunk and sends the result
// to the others, so each rank sends about twice the buffer for any number of ranks. The collectives
// of Communicator send it once to every other rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/comm/communicator.h"

namespace onebit::comm {

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

}  // namespace onebit::comm
