// The Pooling module of sentence-transformers: how a text's token vectors become one vector.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::formats {

// In the order in which several are put after one another.
enum class SentencePooling {
  kFirst,           // the first token, [CLS]
  kMax,             // of each number the largest
  kMean,            // the sum over all tokens, divided by their number
  kMeanSqrtLength,  // divided by the square root of their number
  kWeightedMean,    // the mean with the weights 1, 2, 3 ... by place
  kLast,            // the last token
};

// "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken".
const char* word_of(SentencePooling pooling);
// Joined by "+".
std::string words_of(const std::vector<SentencePooling>& modes);
// The reverse of words_of(). Error: another word, with the known ones.
std::vector<SentencePooling> pooling_modes(std::string_view words);

struct PoolingModule {
  // Their vectors are put after one another.
  std::vector<SentencePooling> modes;
  bool pools_prompt = true;  // "include_prompt"

  bool operator==(const PoolingModule&) const = default;
};

// Errors: no mode, an unknown one, an unknown member.
PoolingModule read_pooling(const Path& file);
// `hidden` is the length of a token's vector.
void write_pooling(const Path& file, const PoolingModule& module, int64_t hidden);

}  // namespace onebit::formats
