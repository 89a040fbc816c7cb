#include "onebit/ground/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "onebit/ground/base/printable.h"

namespace onebit {
namespace {

std::atomic<int> log_rank{0};

spdlog::logger& logger() {
  static const auto instance = [] {
    auto created = std::make_shared<spdlog::logger>(
        "onebit", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    created->set_pattern("%^%H:%M:%S%$ %v");
    created->set_level(spdlog::level::info);
    return created;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::string_view prefix(LogLevel level) {
  if (level == LogLevel::kWarning) return "warning: ";
  if (level == LogLevel::kError) return "error: ";
  return "";
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(to_spdlog(level));
}

void set_log_rank(int rank) {
  log_rank = rank;
}

void show(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void log_line(LogLevel level, std::string_view unfiltered) {
  const std::string text = printable(unfiltered);
  const int rank = log_rank;
  if (rank != 0 && level < LogLevel::kError) return;
  if (rank != 0) {
    logger().log(to_spdlog(level), "[rank {}] {}{}", rank, prefix(level), text);
  } else {
    logger().log(to_spdlog(level), "{}{}", prefix(level), text);
  }
}

}  // namespace onebit
