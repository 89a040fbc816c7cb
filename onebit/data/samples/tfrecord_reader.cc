#include "onebit/data/samples/tfrecord_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/data/samples/record_stream.h"
#include "onebit/data/samples/tf_example.h"
#include "onebit/ground/base/error.h"

namespace onebit::samples {
namespace {

constexpr const char* kWeights = "masked_lm_weights";
constexpr const char* kNextSentence = "next_sentence_labels";

struct IntegerField {
  const char* name;
  std::vector<int64_t> PaddedSample::*numbers;
  bool required;
};
constexpr std::array kIntegerFields = {
    IntegerField{"input_ids", &PaddedSample::input_ids, true},
    IntegerField{"segment_ids", &PaddedSample::segment_ids, true},
    IntegerField{"input_mask", &PaddedSample::input_mask, false},
    IntegerField{"masked_lm_positions", &PaddedSample::masked_lm_positions, true},
    IntegerField{"masked_lm_ids", &PaddedSample::masked_lm_ids, true},
};

bool is_known(std::string_view name) {
  return name == kWeights || name == kNextSentence ||
         std::any_of(kIntegerFields.begin(), kIntegerFields.end(),
                     [&](const IntegerField& field) { return name == field.name; });
}

void require_kind(const Feature& feature, Feature::Kind kind, const std::string& place) {
  require(feature.kind == kind, "{}: feature {} has no {}: not a BERT example", place, feature.name,
          kind == Feature::Kind::kFloats ? "floats" : "integers");
}

void take_feature(Feature& feature, PaddedSample& sample) {
  const std::string& place = sample.place;
  const auto refuse_second = [&](bool first) {
    require(first, "{}: has the feature {} twice", place, feature.name);
  };
  if (feature.name == kWeights) {
    require_kind(feature, Feature::Kind::kFloats, place);
    refuse_second(sample.masked_lm_weights.empty());
    std::swap(sample.masked_lm_weights, feature.floats);
    return;
  }
  require_kind(feature, Feature::Kind::kIntegers, place);
  if (feature.name == kNextSentence) {
    refuse_second(!sample.next_sentence);
    require(feature.integers.size() == 1, "{}: {} has {} numbers, expected 1", place, feature.name,
            feature.integers.size());
    sample.next_sentence = feature.integers.front();
    return;
  }
  for (const IntegerField& field : kIntegerFields) {
    if (feature.name != field.name) continue;
    refuse_second((sample.*field.numbers).empty());
    std::swap(sample.*field.numbers, feature.integers);
  }
}

class TfRecordReader : public SampleReader {
 public:
  explicit TfRecordReader(const Path& path)
      : records_(corpus::open_byte_stream(path, path.string()), path.string()) {}

  bool read(PaddedSample& sample) override {
    if (!records_.read(record_)) return false;
    sample.place = records_.place();
    parse_bert_example(record_, records_.content_offset(), sample);
    return true;
  }

  uint64_t consumed_bytes() const override { return records_.consumed_bytes(); }

 private:
  RecordStream records_;
  std::string record_;
};

}  // namespace

void parse_bert_example(std::string_view record, uint64_t offset, PaddedSample& sample) {
  sample.clear();
  for_each_feature(record, sample.place, offset, {}, is_known,
                   [&](Feature& feature) { take_feature(feature, sample); });
  for (const IntegerField& field : kIntegerFields) {
    require(
        !field.required || !(sample.*field.numbers).empty(),
        "{}: has no feature {} (or an empty one): expected examples of create_pretraining_data.py",
        sample.place, field.name);
  }
}

std::unique_ptr<SampleReader> open_tfrecord(const Path& path) {
  return std::make_unique<TfRecordReader>(path);
}

}  // namespace onebit::samples
