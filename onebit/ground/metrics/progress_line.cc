#include "onebit/ground/metrics/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <vector>

#include "onebit/ground/base/log.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::metrics {
namespace {

constexpr double kTerminalSeconds = 0.1;
constexpr size_t kUsualWidth = 80;
constexpr std::string_view kClearLine = "\r\x1b[K";

size_t terminal_width(int descriptor) {
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualWidth;
}

// A failed progress line must not stop a run: a closed terminal or pipe is ignored.
void put(int descriptor, std::string_view text) {
  // A host program may have redirected the log: show() then passes the line on to it.
  if (descriptor == STDERR_FILENO) return show(text);
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(written);
  }
}

}  // namespace

std::string progress_text(const ProgressFigures& figures, size_t width) {
  std::vector<std::string> parts;
  std::string step = fmt::format("step {}", figures.step);
  if (figures.total_steps > 0) {
    step += fmt::format("/{} {}%", figures.total_steps, 100 * figures.step / figures.total_steps);
  }
  parts.push_back(std::move(step));
  const auto add = [&](double value, auto&& format) {
    if (!std::isnan(value)) parts.push_back(format(value));
  };
  add(figures.loss, [](double value) { return fmt::format("loss {:.3f}", value); });
  for (const Metric& metric : figures.metrics) {
    if (metric.label.empty()) continue;
    add(metric.value, [&](double value) { return fmt::format("{} {:.3f}", metric.label, value); });
  }
  add(figures.learning_rate, [](double value) { return fmt::format("lr {:.2e}", value); });
  add(figures.samples_per_second, [](double value) { return human_count(value) + " samples/s"; });
  add(figures.seconds_left, [](double value) { return human_duration(value) + " left"; });
  add(figures.tokens_per_second, [](double value) { return human_count(value) + " tokens/s"; });
  if (!figures.phase.empty()) parts.emplace_back(figures.phase);
  std::string text = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (width > 0 && display_width(text) + 2 + display_width(parts[i]) > width) break;
    text += "  " + parts[i];
  }
  return text;
}

ProgressLine::ProgressLine(int descriptor, double every_seconds)
    : descriptor_(descriptor),
      is_terminal_(::isatty(descriptor) == 1),
      every_seconds_(is_terminal_ ? kTerminalSeconds : every_seconds) {}

ProgressLine::~ProgressLine() {
  finish();
}

bool ProgressLine::is_due() const {
  return !started_ || since_last_.seconds() >= every_seconds_;
}

void ProgressLine::update(const ProgressFigures& figures) {
  const bool due = is_due();
  phase_ = figures.phase;
  figures_ = figures;
  figures_.phase = phase_;
  shown_ = false;
  if (due) draw();
}

void ProgressLine::draw() {
  started_ = true;
  shown_ = true;
  since_last_.restart();
  if (is_terminal_) {
    // One column stays free, since a full line would wrap.
    put(descriptor_,
        std::string(kClearLine) + progress_text(figures_, terminal_width(descriptor_) - 1));
    open_ = true;
  } else {
    put(descriptor_, progress_text(figures_, 0) + "\n");
  }
}

void ProgressLine::note(std::string_view line) {
  if (open_) put(descriptor_, kClearLine);
  put(descriptor_, std::string(line) + "\n");
  if (open_) draw();
}

void ProgressLine::finish() {
  if (!shown_) draw();
  if (open_) put(descriptor_, "\n");
  open_ = false;
}

}  // namespace onebit::metrics
