// The progress of encoding texts.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/ground/base/clock.h"

namespace onebit::embed {

// Rewritten in place on a terminal, otherwise a line from time to time.
class EncodingProgress {
 public:
  EncodingProgress();
  ~EncodingProgress();
  EncodingProgress(const EncodingProgress&) = delete;
  EncodingProgress& operator=(const EncodingProgress&) = delete;

  void add(int64_t texts);
  // "1200 texts, 310.5 per second"
  std::string text() const;

 private:
  bool is_terminal_;
  bool is_open_ = false;
  int64_t texts_ = 0;
  Stopwatch since_start_, since_shown_;
};

}  // namespace onebit::embed
