// Serializes TensorBoard's events: the protocol buffers Event and Summary, written by hand (four
// message types, no schema compiler), and the record around them. TensorFlow,
// core/util/event.proto, core/framework/summary.proto, core/lib/io/record_writer.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace onebit::metrics {

struct Scalar {
  std::string tag;
  double value = 0;
};

struct EventTime {
  double wall_seconds = 0;  // since 1970
  int64_t step = 0;
};

std::string version_event(EventTime time);
// Makes TensorBoard drop the events for steps >= time.step in earlier files of the folder.
std::string session_start_event(EventTime time);
std::string scalars_event(EventTime time, std::span<const Scalar> scalars);

// length, masked CRC of the length, data, masked CRC of the data.
std::string record_of(std::string_view event);

}  // namespace onebit::metrics
