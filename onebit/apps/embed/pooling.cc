#include "onebit/apps/embed/pooling.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/error.h"

namespace onebit::embed {
namespace {

using formats::SentencePooling;

// The tokens of one sequence that count, and what comes before them.
struct Tokens {
  const float* rows;  // [left_out + count, hidden]
  int64_t left_out, count, hidden;

  const float* row(int64_t token) const { return rows + (left_out + token) * hidden; }
};

void take_largest(const Tokens& tokens, float* vector) {
  std::copy_n(tokens.row(0), tokens.hidden, vector);
  for (int64_t t = 1; t < tokens.count; ++t) {
    const float* row = tokens.row(t);
    for (int64_t i = 0; i < tokens.hidden; ++i) {
      // A number that is not finite must show.
      if (row[i] > vector[i] || std::isnan(row[i])) vector[i] = row[i];
    }
  }
}

// A token keeps the weight of its place in the whole text where a prompt is left out.
double weight_of(SentencePooling mode, const Tokens& tokens, int64_t token) {
  if (mode != SentencePooling::kWeightedMean) return 1;
  return static_cast<double>(tokens.left_out + token + 1);
}

void take_mean(SentencePooling mode, const Tokens& tokens, std::vector<double>& sums,
               float* vector) {
  sums.assign(static_cast<size_t>(tokens.hidden), 0);
  double weights = 0;
  for (int64_t t = 0; t < tokens.count; ++t) {
    const double weight = weight_of(mode, tokens, t);
    const float* row = tokens.row(t);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * double{row[i]};
    weights += weight;
  }
  if (mode == SentencePooling::kMeanSqrtLength) weights = std::sqrt(weights);
  for (size_t i = 0; i < sums.size(); ++i) vector[i] = static_cast<float>(sums[i] / weights);
}

void pool(SentencePooling mode, const Tokens& tokens, std::vector<double>& sums, float* vector) {
  switch (mode) {
    case SentencePooling::kFirst:
      std::copy_n(tokens.row(0), tokens.hidden, vector);
      return;
    case SentencePooling::kLast:
      std::copy_n(tokens.row(tokens.count - 1), tokens.hidden, vector);
      return;
    case SentencePooling::kMax:
      take_largest(tokens, vector);
      return;
    case SentencePooling::kMean:
    case SentencePooling::kMeanSqrtLength:
    case SentencePooling::kWeightedMean:
      take_mean(mode, tokens, sums, vector);
  }
}

}  // namespace

void pool_sequences(const Context& context, const PoolSequences& call) {
  const auto sequences = static_cast<int64_t>(call.starts.size()) - 1;
  const auto modes = static_cast<int64_t>(call.modes.size());
  context.parallel_for(sequences, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> sums;
    for (int64_t s = begin; s < end; ++s) {
      const auto index = static_cast<size_t>(s);
      const int64_t first = call.starts[index], length = call.starts[index + 1] - first;
      const int64_t left_out = index < call.left_out.size() ? call.left_out[index] : 0;
      require(left_out < length,
              "the model leaves the prompt's {} tokens out of its pooling (include_prompt), and "
              "the text has {}: none is left",
              left_out, length);
      const Tokens tokens{.rows = call.rows + first * call.hidden,
                          .left_out = left_out,
                          .count = length - left_out,
                          .hidden = call.hidden};
      for (int64_t mode = 0; mode < modes; ++mode) {
        pool(call.modes[static_cast<size_t>(mode)], tokens, sums,
             call.vectors + (s * modes + mode) * call.hidden);
      }
    }
  });
}

}  // namespace onebit::embed
