#include "onebit/ground/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "onebit/ground/base/printable.h"

namespace onebit {
namespace {

std::atomic<int> log_rank{0};
std::atomic<LogLevel> lowest_level{LogLevel::kInfo};

// The function of a host program that takes the log.
struct HostSink {
  std::mutex mutex;
  std::function<void(LogLevel, std::string_view)> write;
};

HostSink& host_sink() {
  static HostSink sink;
  return sink;
}

// False if there is no sink.
bool write_to_host(LogLevel level, std::string_view text) {
  HostSink& sink = host_sink();
  const std::lock_guard lock(sink.mutex);
  if (!sink.write) return false;
  sink.write(level, text);
  return true;
}

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

void set_log_sink(std::function<void(LogLevel, std::string_view)> sink) {
  const std::lock_guard lock(host_sink().mutex);
  host_sink().write = std::move(sink);
}

void set_log_level(LogLevel level) {
  lowest_level = level;
  logger().set_level(to_spdlog(level));
}

void set_log_rank(int rank) {
  log_rank = rank;
}

void show(std::string_view text) {
  if (write_to_host(LogLevel::kInfo, text)) return;
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(written);
  }
}

void log_line(LogLevel level, std::string_view unfiltered) {
  const int rank = log_rank;
  if (level < lowest_level || (rank != 0 && level < LogLevel::kError)) return;
  const std::string mark = rank == 0 ? "" : fmt::format("[rank {}] ", rank);
  const std::string text = printable(unfiltered);
  if (write_to_host(level, mark + text)) return;
  logger().log(to_spdlog(level), "{}{}{}", mark, prefix(level), text);
}

}  // namespace onebit
