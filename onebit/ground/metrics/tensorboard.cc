#include "onebit/ground/metrics/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>

#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"

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
constexpr int kValueTag = 1, kValueScalar = 2;

Message event_at(EventTime time) {
  Message event;
  event.add_double(kEventWallTime, time.wall_seconds);
  event.add_varint(kEventStep, static_cast<uint64_t>(time.step));
  return event;
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

std::string record_of(std::string_view event) {
  const uint64_t length = event.size();
  const uint32_t length_crc = mask_crc32c(crc32c(&length, sizeof length));
  const uint32_t data_crc = mask_crc32c(crc32c(event.data(), event.size()));
  std::string record(reinterpret_cast<const char*>(&length), sizeof length);
  record.append(reinterpret_cast<const char*>(&length_crc), sizeof length_crc);
  record += event;
  return record.append(reinterpret_cast<const char*>(&data_crc), sizeof data_crc);
}

namespace {

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// A name that no file of the folder has, since two runs may begin in the same second.
Path free_path(const Path& folder, double seconds) {
  const std::string host = host_name();
  const std::string name =
      fmt::format("events.out.tfevents.{:010d}.{}.{}", static_cast<int64_t>(seconds),
                  host.empty() ? "localhost" : host, ::getpid());
  for (int i = 0;; ++i) {
    const Path path = folder / fmt::format("{}.{}", name, i);
    if (!std::filesystem::exists(path)) return path;
  }
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const Path& folder, int64_t last_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "{}: cannot make the folder: {}", folder.string(), error.message());
  const double now = seconds_since_1970();
  file_ = std::make_unique<AppendFile>(free_path(folder, now));
  file_->append(record_of(version_event({now, 0})));
  if (last_step != kNoStep) file_->append(record_of(session_start_event({now, last_step + 1})));
}

void TensorBoardWriter::scalars(int64_t step, std::span<const Scalar> scalars) {
  file_->append(record_of(scalars_event({seconds_since_1970(), step}, scalars)));
}

}  // namespace onebit::metrics
