#include "onebit/data/samples/tfrecord_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/byte_reader.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"

namespace onebit::samples {

namespace {

template <typename Number>
Number number_at(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

// ZLIB of TFRecordOptions: its two-byte header has no magic number except divisibility by 31.
bool looks_like_zlib(const char* bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const auto second = static_cast<unsigned char>(bytes[1]);
  return first == 0x78 && (first * 256 + second) % 31 == 0;
}

}  // namespace

RecordStream::RecordStream(std::unique_ptr<corpus::ByteStream> bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)) {}

std::string RecordStream::place() const {
  return fmt::format("{}: record {} (byte {})", name_, number_, offset_);
}

size_t RecordStream::read_bytes(char* to, size_t size_bytes) {
  size_t used = 0;
  while (used < size_bytes) {
    const size_t got = bytes_->read(to + used, size_bytes - used);
    if (got == 0) break;
    used += got;
  }
  return used;
}

bool RecordStream::read(std::string& record) {
  ++number_;
  offset_ = next_offset_;
  std::array<char, kHeaderBytes> header;
  const size_t got = read_bytes(header.data(), header.size());
  if (got == 0) return false;
  require(got == header.size(), "{}: the file is truncated in the length field", place());
  const auto size_bytes = number_at<uint64_t>(header.data());
  const uint32_t length_checksum = mask_crc32c(crc32c(header.data(), sizeof size_bytes));
  if (length_checksum != number_at<uint32_t>(header.data() + sizeof size_bytes)) {
    require(number_ > 1, "{}: {}", name_,
            looks_like_zlib(header.data())
                ? "is zlib-compressed, which is not supported: write it with GZIP or uncompressed "
                  "(TFRecordOptions), or decompress it with `pigz -dz`"
                : "is not a TFRecord file, or its first bytes are damaged (the checksum of the "
                  "first length is wrong)");
    fail("{}: the checksum of its length is wrong: the file is damaged; copy it again", place());
  }
  require(size_bytes <= kMaxRecordBytes, "{}: has {} bytes, more than {}: too long for an example",
          place(), size_bytes, kMaxRecordBytes);
  // Read in pieces, so that a wrong length in a truncated file does not allocate memory.
  constexpr size_t kPiece = size_t{1} << 20;
  record.clear();
  while (record.size() < size_bytes) {
    const size_t used = record.size(), wanted = std::min<size_t>(size_bytes - used, kPiece);
    record.resize(used + wanted);
    require(read_bytes(record.data() + used, wanted) == wanted,
            "{}: the file is truncated in the record of {} bytes", place(), size_bytes);
  }
  std::array<char, kTrailerBytes> trailer;
  require(read_bytes(trailer.data(), trailer.size()) == trailer.size(),
          "{}: the file is truncated before the checksum", place());
  require(number_at<uint32_t>(trailer.data()) == mask_crc32c(crc32c(record.data(), record.size())),
          "{}: its checksum is wrong: the file is damaged; copy it again", place());
  next_offset_ = offset_ + kHeaderBytes + size_bytes + kTrailerBytes;
  return true;
}

namespace {

// Field numbers in example.proto and feature.proto.
constexpr uint64_t kFeatures = 1;  // Example
constexpr uint64_t kFeature = 1;   // Features: a map, which is a repeated (key, value)
constexpr uint64_t kKey = 1, kValue = 2;
constexpr uint64_t kBytesList = 1, kFloatList = 2, kInt64List = 3;  // Feature
constexpr uint64_t kNumbers = 1;                                    // FloatList, Int64List

class FeatureParser {
 public:
  FeatureParser(const std::string& place, const ExampleLimits& limits)
      : place_(place), limits_(limits) {}

  void read(const ProtoField& message, Feature& feature) const {
    ProtoReader reader(message.bytes, place_, message.offset);
    ProtoField list;
    while (reader.next(list)) {
      switch (list.number) {
        case kBytesList:
          feature.kind = Feature::Kind::kBytes;
          break;
        case kFloatList:
          feature.kind = Feature::Kind::kFloats;
          read_floats(list, feature.floats);
          break;
        case kInt64List:
          feature.kind = Feature::Kind::kIntegers;
          read_integers(list, feature.integers);
          break;
        default:
          break;
      }
    }
  }

 private:
  // Numbers are packed into one field, or, from old writers, each in a field of its own.
  void read_integers(const ProtoField& message, std::vector<int64_t>& numbers) const {
    ProtoReader reader(message.bytes, place_, message.offset);
    ProtoField field;
    while (reader.next(field)) {
      if (field.number != kNumbers) continue;
      if (field.bytes.empty()) {
        // A number in a field of its own (offset 0), or an empty packed list.
        if (field.offset == 0) add(numbers, static_cast<int64_t>(field.value));
        continue;
      }
      ByteReader packed(std::as_bytes(std::span(field.bytes)), place_, field.offset);
      while (!packed.at_end()) add(numbers, static_cast<int64_t>(packed.varint()));
    }
  }

  void read_floats(const ProtoField& message, std::vector<float>& numbers) const {
    ProtoReader reader(message.bytes, place_, message.offset);
    ProtoField field;
    while (reader.next(field)) {
      if (field.number != kNumbers) continue;
      if (field.bytes.empty()) {
        if (field.offset == 0) {
          add(numbers, std::bit_cast<float>(static_cast<uint32_t>(field.value)));
        }
        continue;
      }
      ByteReader packed(std::as_bytes(std::span(field.bytes)), place_, field.offset);
      while (!packed.at_end()) add(numbers, packed.number<float>());
    }
  }

  template <typename Number>
  void add(std::vector<Number>& numbers, Number number) const {
    require(numbers.size() < limits_.most_numbers,
            "{}: a feature has more than {} numbers: not a BERT example", place_,
            limits_.most_numbers);
    numbers.push_back(number);
  }

  const std::string& place_;
  const ExampleLimits& limits_;
};

}  // namespace

void for_each_feature(std::string_view example, const std::string& place, uint64_t offset,
                      const ExampleLimits& limits,
                      const std::function<bool(std::string_view)>& wanted,
                      const std::function<void(Feature&)>& found) {
  const FeatureParser parser(place, limits);
  Feature feature;
  ProtoReader outer(example, place, offset);
  ProtoField features;
  while (outer.next(features)) {
    if (features.number != kFeatures) continue;
    ProtoReader map(features.bytes, place, features.offset);
    ProtoField entry;
    while (map.next(entry)) {
      if (entry.number != kFeature) continue;
      ProtoField part, value;
      feature.name = {};
      for (ProtoReader pair(entry.bytes, place, entry.offset); pair.next(part);) {
        if (part.number == kKey) feature.name = part.bytes;
        if (part.number == kValue) value = part;
      }
      if (!wanted(feature.name)) continue;
      feature.kind = Feature::Kind::kEmpty;
      feature.integers.clear();
      feature.floats.clear();
      parser.read(value, feature);
      found(feature);
    }
  }
}

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
