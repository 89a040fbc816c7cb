#include "tests/model/tiny_batch.h"

#include <algorithm>

#include "onebit/ground/base/philox.h"

namespace onebit::model {
namespace {

template <typename T>
std::vector<T> cut(const std::vector<T>& from, int64_t begin, int64_t end) {
  return {from.begin() + begin, from.begin() + end};
}

template <typename T>
ConstView flat(const std::vector<T>& values) {
  return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
}

}  // namespace

BatchLimits TinyBatch::limits() const {
  return {.rows = static_cast<int64_t>(tokens.size()),
          .sequences = sequences(),
          .longest = SequenceStarts{.device = {}, .host = starts}.longest(),
          .labelled = static_cast<int64_t>(std::max(masked_rows.size(), tagged_rows.size()))};
}

TinyBatch TinyBatch::part(int64_t begin, int64_t end) const {
  const int32_t first = starts[static_cast<size_t>(begin)], last = starts[static_cast<size_t>(end)];
  TinyBatch result;
  result.tokens = cut(tokens, first, last);
  result.segments = cut(segments, first, last);
  result.positions = cut(positions, first, last);
  result.row_keys = cut(row_keys, first, last);
  for (int64_t s = begin; s < end; ++s) {
    result.starts.push_back(starts[static_cast<size_t>(s) + 1] - first);
  }
  for (size_t item = 0; item < masked_rows.size(); ++item) {
    if (masked_rows[item] < first || masked_rows[item] >= last) continue;
    result.masked_rows.push_back(masked_rows[item] - first);
    result.masked_targets.push_back(masked_targets[item]);
  }
  for (size_t item = 0; item < tagged_rows.size(); ++item) {
    if (tagged_rows[item] < first || tagged_rows[item] >= last) continue;
    result.tagged_rows.push_back(tagged_rows[item] - first);
    result.tags.push_back(tags[item]);
  }
  result.next_sentence = cut(next_sentence, begin, end);
  result.span_starts = cut(span_starts, begin, end);
  result.span_ends = cut(span_ends, begin, end);
  result.classes = cut(classes, begin, end);
  result.label_values = cut(label_values, 3 * begin, 3 * end);
  return result;
}

DeviceBatch TinyBatch::view_of_rows() const {
  return {.tokens = flat(tokens),
          .segments = flat(segments),
          .positions = flat(positions),
          .row_keys = flat(row_keys),
          .sequence_starts = {.device = flat(starts), .host = starts},
          .labelled_rows = {},
          .row_labels = {},
          .sequence_labels = {},
          .sequence_values = {}};
}

DeviceBatch TinyBatch::view() const {
  DeviceBatch batch = view_of_rows();
  batch.labelled_rows = flat(masked_rows);
  batch.row_labels = flat(masked_targets);
  batch.sequence_labels = flat(next_sentence);
  return batch;
}

DeviceBatch TinyBatch::view_of_spans() {
  spans_ = span_starts;
  spans_.insert(spans_.end(), span_ends.begin(), span_ends.end());
  DeviceBatch batch = view_of_rows();
  batch.sequence_labels = flat(spans_);
  return batch;
}

DeviceBatch TinyBatch::view_of_classes() const {
  DeviceBatch batch = view_of_rows();
  batch.sequence_labels = flat(classes);
  return batch;
}

DeviceBatch TinyBatch::view_of_values() const {
  DeviceBatch batch = view_of_rows();
  batch.sequence_values = flat(label_values);
  return batch;
}

DeviceBatch TinyBatch::view_of_tags() const {
  DeviceBatch batch = view_of_rows();
  batch.labelled_rows = flat(tagged_rows);
  batch.row_labels = flat(tags);
  return batch;
}

TinyBatch random_batch(const EncoderConfig& config, const std::vector<int64_t>& lengths,
                       uint64_t seed) {
  RandomSequence random(seed, 1, 0), random_values(seed, 2, 0), random_tags(seed, 3, 0);
  const auto below = [&](int64_t bound) {
    return static_cast<int32_t>(random.below(static_cast<uint32_t>(bound)));
  };
  TinyBatch batch;
  for (size_t s = 0; s < lengths.size(); ++s) {
    const int64_t length = lengths[s];
    const int32_t split = below(length);
    const int32_t first_masked = 1 + below(length - 1);
    for (int32_t position = 0; position < length; ++position) {
      const auto row = static_cast<int32_t>(batch.tokens.size());
      batch.tokens.push_back(below(config.vocab_size));
      batch.segments.push_back(position > split ? 1 : 0);
      batch.positions.push_back(position);
      batch.row_keys.push_back((seed << 32) | (s << 16) | static_cast<uint64_t>(position));
      if (position > 0 && (position == first_masked || below(4) == 0)) {
        batch.masked_rows.push_back(row);
        batch.masked_targets.push_back(below(config.vocab_size));
      }
    }
    for (int32_t position = 0; position < length; ++position) {
      if (position > 0 && random_tags.below(2) == 0) continue;
      batch.tagged_rows.push_back(batch.starts.back() + position);
      batch.tags.push_back(static_cast<int32_t>(random_tags.below(4)) - 1);
    }
    batch.starts.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.next_sentence.push_back(below(2));
    batch.span_starts.push_back(below(length));
    batch.span_ends.push_back(below(length));
    batch.classes.push_back(below(3));
    for (int i = 0; i < 3; ++i) {
      batch.label_values.push_back(static_cast<float>(random_values.below(2)));
    }
  }
  return batch;
}

}  // namespace onebit::model
