// An event file for TensorBoard that grows during the run, and its events.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "onebit/ground/metrics/append_file.h"
#include "onebit/ground/metrics/log_line.h"

namespace onebit::metrics {

// Serializes TensorBoard's events: the protocol buffers Event and Summary, written by hand (four
// message types, no schema compiler), and the record around them. TensorFlow,
// core/util/event.proto, core/framework/summary.proto, core/lib/io/record_writer.h.
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

class TensorBoardWriter {
 public:
  // Creates `folder` if needed and in it events.out.tfevents.<seconds>.<host>.<process>. With
  // `last_step` other than kNoStep, the run continues after that step, and TensorBoard drops later
  // events in earlier files of the folder.
  TensorBoardWriter(const Path& folder, int64_t last_step);

  // The event has reached the operating system on return.
  void scalars(int64_t step, std::span<const Scalar> scalars);

  const Path& path() const { return file_->path(); }

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace onebit::metrics
