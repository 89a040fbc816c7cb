// Log lines to standard error, from rank 0 only unless stated otherwise.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

namespace onebit {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Lines below `level` are dropped. Default kInfo.
void set_log_level(LogLevel level);
// Ranks other than 0 log only errors, marked with the rank: warnings concern all ranks alike.
void set_log_rank(int rank);
// Log lines and shown texts go to `sink` from now on, instead of to standard error: for a host
// program, for example a Python interpreter. Any thread may call the sink, one at a time. An empty
// function means standard error again. The sink must not log, nor throw.
void set_log_sink(std::function<void(LogLevel level, std::string_view text)> sink);
// Control characters in the text, which may be out of a file, are replaced (printable.h).
void log_line(LogLevel level, std::string_view text);
// Writes a text as it is to standard error: a table, a progress line, a hint. (A sink gets it as
// kInfo.) What cannot be written (a full disk, a terminal that has gone) is dropped: a run must not
// end because of what it shows. The same holds for the log.
void show(std::string_view text);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace onebit
