#include "onebit/metrics/tensorboard_event.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "onebit/base/crc32c.h"
#include "onebit/base/error.h"

namespace onebit::metrics {
namespace {

// Writes one message, field after field.
class Message {
 public:
  void add_varint(int field, uint64_t value) {
    put_key(field, 0);
    put_varint(value);
  }
  void add_double(int field, double value) {
    put_key(field, 1);
    put_raw(&value, sizeof value);
  }
  void add_float(int field, float value) {
    put_key(field, 5);
    put_raw(&value, sizeof value);
  }
  void add_bytes(int field, std::string_view value) {
    put_key(field, 2);
    put_varint(value.size());
    bytes_ += value;
  }
  void add_message(int field, const Message& message) { add_bytes(field, message.bytes_); }
  void add_packed(int field, std::span<const double> values) {
    add_bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void put_key(int field, int wire_type) {
    put_varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
  }
  void put_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void put_raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }

  std::string bytes_;
};

// Field numbers of event.proto and summary.proto.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
              kEventSessionLog = 7;
constexpr int kSessionStatus = 1, kSessionStart = 1;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1, kValueScalar = 2, kValueHistogram = 5, kValueTensor = 8,
              kValueMetadata = 9;

Message event_at(EventTime time) {
  Message event;
  event.add_double(kEventWallTime, time.wall_seconds);
  event.add_varint(kEventStep, static_cast<uint64_t>(time.step));
  return event;
}

std::string summary_event(EventTime time, const Message& value) {
  Message summary, event = event_at(time);
  summary.add_message(kSummaryValue, value);
  event.add_message(kEventSummary, summary);
  return event.bytes();
}

}  // namespace

std::string version_event(EventTime time) {
  Message event;
  event.add_double(kEventWallTime, time.wall_seconds);
  event.add_bytes(kEventFileVersion, "brain.Event:2");
  return event.bytes();
}

std::string session_start_event(EventTime time) {
  Message session, event = event_at(time);
  session.add_varint(kSessionStatus, kSessionStart);
  event.add_message(kEventSessionLog, session);
  return event.bytes();
}

std::string scalars_event(EventTime time, std::span<const Scalar> scalars) {
  Message summary, event = event_at(time);
  for (const Scalar& scalar : scalars) {
    Message value;
    value.add_bytes(kValueTag, scalar.tag);
    value.add_float(kValueScalar, static_cast<float>(scalar.value));
    summary.add_message(kSummaryValue, value);
  }
  event.add_message(kEventSummary, summary);
  return event.bytes();
}

std::string text_event(EventTime time, std::string_view tag, std::string_view markdown) {
  constexpr int kTensorType = 1, kTensorShape = 2, kTensorStrings = 8, kTypeString = 7;
  constexpr int kShapeDimension = 2, kDimensionSize = 1;
  constexpr int kMetadataPlugin = 1, kPluginName = 1;
  Message dimension, shape, tensor, plugin, metadata, value;
  dimension.add_varint(kDimensionSize, 1);
  shape.add_message(kShapeDimension, dimension);
  tensor.add_varint(kTensorType, kTypeString);
  tensor.add_message(kTensorShape, shape);
  tensor.add_bytes(kTensorStrings, markdown);
  plugin.add_bytes(kPluginName, "text");
  metadata.add_message(kMetadataPlugin, plugin);
  value.add_bytes(kValueTag, tag);
  value.add_message(kValueTensor, tensor);
  value.add_message(kValueMetadata, metadata);
  return summary_event(time, value);
}

std::string histogram_event(EventTime time, std::string_view tag, const Histogram& histogram) {
  Message proto, value;
  proto.add_double(1, histogram.minimum);
  proto.add_double(2, histogram.maximum);
  proto.add_double(3, histogram.count);
  proto.add_double(4, histogram.sum);
  proto.add_double(5, histogram.sum_of_squares);
  proto.add_packed(6, histogram.limits);
  proto.add_packed(7, histogram.counts);
  value.add_bytes(kValueTag, tag);
  value.add_message(kValueHistogram, proto);
  return summary_event(time, value);
}

Histogram histogram_of(std::span<const float> values, int buckets) {
  ONEBIT_INVARIANT(buckets > 0);
  Histogram result;
  result.minimum = std::numeric_limits<double>::max();
  result.maximum = std::numeric_limits<double>::lowest();
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double wide = value;
    result.minimum = std::min(result.minimum, wide);
    result.maximum = std::max(result.maximum, wide);
    result.count += 1;
    result.sum += wide;
    result.sum_of_squares += wide * wide;
  }
  if (result.count == 0) result.minimum = result.maximum = 0;
  const double width = (result.maximum - result.minimum) / buckets;
  // The first bucket is empty, since TensorBoard lets the first one begin at minus infinity.
  result.limits.push_back(result.minimum);
  for (int i = 1; i < buckets; ++i) result.limits.push_back(result.minimum + width * i);
  result.limits.push_back(result.maximum);
  result.counts.assign(result.limits.size(), 0);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double at = width > 0 ? (value - result.minimum) / width : 0;
    const int bucket = std::clamp(static_cast<int>(at), 0, buckets - 1);
    result.counts[static_cast<size_t>(bucket) + 1] += 1;
  }
  return result;
}

std::string record_of(std::string_view event) {
  const uint64_t length = event.size();
  const uint32_t length_crc = mask_crc32c(crc32c(&length, sizeof length));
  const uint32_t data_crc = mask_crc32c(crc32c(event.data(), event.size()));
  std::string record(reinterpret_cast<const char*>(&length), sizeof length);
  record.append(reinterpret_cast<const char*>(&length_crc), sizeof length_crc);
  record += event;
  return record.append(reinterpret_cast<const char*>(&data_crc), sizeof data_crc);
}

}  // namespace onebit::metrics
