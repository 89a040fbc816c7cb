// The progress line of a run: rewritten in place on a terminal, a new line from time to time if the
// output is a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/metrics/metric.h"

namespace onebit::metrics {

// The figures on the line. Values that are NaN are left out.
struct ProgressFigures {
  int64_t step = 0, total_steps = 0;
  double loss = 0;
  std::vector<Metric> metrics = {};  // those with a label are shown
  double learning_rate = 0;
  double samples_per_second = 0, tokens_per_second = 0;
  double seconds_left = 0;
  std::string_view phase = {};  // "dense", "warmup", "compressed", "uncompressed", or empty
};

// "step 120/2000 6%  loss 7.301  mlm 6.61  nsp 0.69  lr 1.0e-04  84.2 samples/s  10.8k tokens/s
// 3m 05s left", as many of the parts, from the left, as `width` columns hold (0: all).
std::string progress_text(const ProgressFigures& figures, size_t width);

class ProgressLine {
 public:
  // Writes to `descriptor` (2: standard error). On a terminal the line is rewritten at most ten
  // times a second. Elsewhere a line is written every `every_seconds`.
  ProgressLine(int descriptor, double every_seconds);
  // Ends the line as finish() does.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether update() would write now: lets a caller skip computing the figures.
  bool is_due() const;
  // Writes if due. The first call always writes.
  void update(const ProgressFigures& figures);
  // Prints a permanent line above the progress line.
  void note(std::string_view line);
  // Writes the last state in full and ends the line. A second call does nothing.
  void finish();

 private:
  void draw();

  int descriptor_;
  bool is_terminal_;
  double every_seconds_;
  Stopwatch since_last_;
  ProgressFigures figures_;
  std::string phase_;  // keeps figures_.phase alive
  bool started_ = false, open_ = false, shown_ = true;
};

}  // namespace onebit::metrics
