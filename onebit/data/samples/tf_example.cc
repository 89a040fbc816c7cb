#include "onebit/data/samples/tf_example.h"

#include <bit>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/proto_reader.h"

namespace onebit::samples {
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

}  // namespace onebit::samples
