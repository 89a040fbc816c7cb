// Poolings of sentence-transformers that the device's operations do not compute, on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/data/formats/sentence_pooling.h"
#include "onebit/math/device/context.h"

namespace onebit::embed {

// How one vector is made of a text's tokens.
struct Pooling {
  // Their vectors are put after one another.
  std::vector<formats::SentencePooling> modes = {formats::SentencePooling::kMean};
  // Whether the tokens of a prompt count. If not, a batch says how many each of its texts has.
  bool pools_prompt = true;
  // Whether the states of all tokens are asked for as well.
  bool has_token_states = false;

  // The first token of every text is all that is read.
  bool reads_first_only() const {
    return pools_prompt && modes == std::vector{formats::SentencePooling::kFirst};
  }
};

// vectors[s] = the poolings of the rows of sequence s, one after the other. Error: no token is left
// to be pooled besides the prompt's.
struct PoolSequences {
  const float* rows;  // [starts.back(), hidden]
  int64_t hidden;
  std::span<const int32_t> starts;    // [sequences + 1]
  std::span<const int32_t> left_out;  // [at most sequences]: first tokens that do not count
  std::span<const formats::SentencePooling> modes;
  float* vectors;  // [sequences, modes * hidden]  overwritten
};
void pool_sequences(const Context& context, const PoolSequences& call);

}  // namespace onebit::embed
