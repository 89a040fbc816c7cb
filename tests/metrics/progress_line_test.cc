#include "onebit/ground/metrics/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cmath>

namespace onebit::metrics {
namespace {

ProgressFigures figures(int64_t step) {
  return {.step = step,
          .total_steps = 2000,
          .loss = 7.3012,
          .metrics = {{.name = "mlm_loss", .value = 6.61, .label = "mlm"},
                      {.name = "nsp_loss", .value = 0.69, .label = "nsp"},
                      {.name = "mlm_accuracy", .value = 0.1}},
          .learning_rate = 1e-4,
          .samples_per_second = 84.2,
          .tokens_per_second = 10800,
          .seconds_left = 185,
          .phase = "warmup"};
}

TEST(ProgressText, PartsThatFit) {
  const std::string whole =
      "step 120/2000 6%  loss 7.301  mlm 6.610  nsp 0.690  lr 1.00e-04  84.2 samples/s  3m 05s left"
      "  10.8k tokens/s  warmup";
  EXPECT_EQ(progress_text(figures(120), 0), whole);
  EXPECT_EQ(progress_text(figures(120), whole.size()), whole);
  EXPECT_EQ(progress_text(figures(120), 40), "step 120/2000 6%  loss 7.301  mlm 6.610");
  EXPECT_EQ(progress_text(figures(120), 1), "step 120/2000 6%");
  ProgressFigures without = figures(3);
  without.metrics[1].value = NAN;
  without.total_steps = 0;
  EXPECT_EQ(progress_text(without, 38), "step 3  loss 7.301  mlm 6.610");
}

// Returns the output of a ProgressLine to the writing end of `ends` while `action` runs.
template <typename Action>
std::string written(std::array<int, 2> ends, double every_seconds, Action action) {
  {
    ProgressLine line(ends[1], every_seconds);
    action(line);
  }
  ::close(ends[1]);
  // A terminal returns its text in pieces. Its end is an error, a pipe's end an empty read.
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t size; (size = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  ::close(ends[0]);
  return text;
}

TEST(ProgressLine, ToAFileOneLineNowAndThenAndTheLast) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string text = written(ends, 3600, [](ProgressLine& line) {
    EXPECT_TRUE(line.is_due());
    line.update(figures(1));
    EXPECT_FALSE(line.is_due());
    line.update(figures(2));
    line.note("saved");
    line.update(figures(3));
  });
  EXPECT_EQ(text, progress_text(figures(1), 0) + "\nsaved\n" + progress_text(figures(3), 0) + "\n");
}

TEST(ProgressLine, OnATerminalInPlaceAndWithinItsWidth) {
  std::array<int, 2> ends{};
  const winsize size{.ws_row = 24, .ws_col = 41, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, &size), 0);
  const std::string text = written(ends, 3600, [](ProgressLine& line) {
    line.update(figures(120));
    line.note("saved");
    line.finish();
  });
  const std::string shown = "\r\x1b[K" + progress_text(figures(120), 40);
  EXPECT_EQ(text, shown + "\r\x1b[Ksaved\r\n" + shown + "\r\n");
}

TEST(ProgressLine, AClosedReaderStopsNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::signal(SIGPIPE, SIG_IGN);
  ::close(ends[0]);
  ProgressLine line(ends[1], 0);
  line.update(figures(1));
  line.finish();
  ::close(ends[1]);
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace onebit::metrics
