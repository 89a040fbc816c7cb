// Computes speed and remaining time from the bytes done, about once a second.
#pragma once

#include <functional>
#include <string>

#include "onebit/ground/base/clock.h"

namespace onebit::corpus {

struct PrepareProgress {
  std::string phase;                // "learning the vocabulary" or "tokenizing"
  uint64_t done_bytes = 0;          // of total_bytes, as sizes on disk
  uint64_t total_bytes = 0;         // 0 when unknown (standard input)
  uint64_t text_bytes = 0;          // uncompressed text so far
  double seconds = 0;               // since the phase began
  double megabytes_per_second = 0;  // of text, 10^6 bytes
  double seconds_left = -1;         // -1 when unknown
};

class ProgressMeter {
 public:
  using Report = std::function<void(const PrepareProgress&)>;
  // `report` may be empty.
  ProgressMeter(std::string phase, uint64_t total_bytes, Report report)
      : phase_(std::move(phase)), total_bytes_(total_bytes), report_(std::move(report)) {}

  void update(uint64_t done_bytes, uint64_t text_bytes) {
    if (!report_ || since_report_.seconds() < 1) return;
    since_report_.restart();
    send(done_bytes, text_bytes);
  }
  void finish(uint64_t done_bytes, uint64_t text_bytes) {
    if (report_) send(done_bytes, text_bytes);
  }
  double seconds() const { return since_start_.seconds(); }

 private:
  void send(uint64_t done_bytes, uint64_t text_bytes) {
    PrepareProgress progress{.phase = phase_,
                             .done_bytes = done_bytes,
                             .total_bytes = total_bytes_,
                             .text_bytes = text_bytes,
                             .seconds = since_start_.seconds()};
    const double seconds = progress.seconds > 0 ? progress.seconds : 1e-9;
    progress.megabytes_per_second = static_cast<double>(text_bytes) * 1e-6 / seconds;
    if (total_bytes_ > 0 && done_bytes > 0) {
      const double left =
          total_bytes_ > done_bytes ? static_cast<double>(total_bytes_ - done_bytes) : 0;
      progress.seconds_left = seconds * left / static_cast<double>(done_bytes);
    }
    report_(progress);
  }

  std::string phase_;
  uint64_t total_bytes_;
  Report report_;
  Stopwatch since_start_, since_report_;
};

}  // namespace onebit::corpus
