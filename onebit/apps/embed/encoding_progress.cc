#include "onebit/apps/embed/encoding_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "onebit/ground/base/log.h"

namespace onebit::embed {

EncodingProgress::EncodingProgress() : is_terminal_(isatty(STDERR_FILENO) != 0) {}

EncodingProgress::~EncodingProgress() {
  if (is_open_) show("\r\033[K");
}

void EncodingProgress::add(int64_t texts) {
  texts_ += texts;
  if (since_shown_.seconds() < (is_terminal_ ? 1 : 30)) return;
  since_shown_.restart();
  if (is_terminal_) {
    show(fmt::format("\r{}\033[K", text()));
    std::fflush(stderr);
    is_open_ = true;
  } else {
    log_info("{}", text());
  }
}

std::string EncodingProgress::text() const {
  return fmt::format("{} texts, {:.1f} per second", texts_,
                     static_cast<double>(texts_) / std::max(since_start_.seconds(), 1e-9));
}

}  // namespace onebit::embed
