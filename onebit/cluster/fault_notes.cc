#include "onebit/cluster/fault_notes.h"

#include <fmt/format.h>
#include <signal.h>

#include <charconv>
#include <cstring>

namespace onebit::cluster {
namespace {

constexpr std::string_view kFailed = " failed: ", kOnebit = "onebit: rank ", kError = "error: ";
constexpr int kUsage = 2;

void keep_first(std::optional<std::string>& kept, std::string text) {
  if (!kept) kept = std::move(text);
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string killed_text(const std::string& rank, int signal) {
  const char* hint = signal == SIGKILL ? "; out of memory, if nobody did it" : "";
  return fmt::format("{} was killed by signal {} ({}{})", rank, signal, ::strsignal(signal), hint);
}

// A lost connection follows from something else, and may come again or not.
bool is_of_the_network(const std::string& text) {
  return text.find("MPI_") != std::string::npos ||
         text.find("message was lost") != std::string::npos;
}

}  // namespace

void FaultNotes::add(const RankLine& line) {
  if (ending_) return;
  const std::string& text = line.text;
  if (line.kind == LineKind::kError) {
    // As comm/mpi_communicator.cc announces the rank that failed.
    const size_t failed = text.find(kFailed);
    if (text.starts_with(kOnebit) && failed != std::string::npos) {
      keep_first(
          reported_,
          fmt::format("{}: {}", log_.name_of(number(std::string_view(text).substr(kOnebit.size()))),
                      text.substr(failed + kFailed.size())));
    }
    const size_t error = text.find(kError);
    if (error != std::string::npos) {
      last_error_ =
          fmt::format("{}: {}", log_.name_of(line.rank), text.substr(error + kError.size()));
    }
  } else if (line.kind == LineKind::kEnd) {
    const int value = number(std::string_view(text).substr(text.find(' ') + 1));
    if (text.starts_with("signal ")) {
      // The starter ends the other ranks with SIGTERM.
      if (value == SIGTERM) {
        keep_first(status_, killed_text(log_.name_of(line.rank), value));
      } else {
        keep_first(killed_, killed_text(log_.name_of(line.rank), value));
      }
    } else if (value != 0) {
      is_usage_ = is_usage_ || value == kUsage;
      keep_first(status_, fmt::format("{} ended with status {}", log_.name_of(line.rank), value));
    }
  }
}

void FaultNotes::add_unmarked(const std::string& line) {
  const bool says_something = line.find_first_not_of(" -\t=*") != std::string::npos;
  if (ending_ || !says_something) return;
  // Among the words that Open MPI has for every case.
  if (line.find("noticed that process rank") != std::string::npos) keep_first(noticed_, line);
  keep_first(unmarked_, line);
}

void FaultNotes::found(const std::string& text) {
  keep_first(found_, text);
}

bool FaultNotes::any() const {
  return found_ || killed_ || reported_ || status_;
}

Cause FaultNotes::cause(const std::string& starter) const {
  if (found_) return {.kind = FaultKind::kOutside, .text = *found_};
  if (killed_) return {.kind = FaultKind::kOutside, .text = *killed_};
  const bool has_error = !last_error_.empty() && status_;
  if (reported_ || has_error) {
    const std::string& text = reported_ ? *reported_ : last_error_;
    return {.kind = is_of_the_network(text) ? FaultKind::kOutside : FaultKind::kReported,
            .text = text,
            .is_usage = is_usage_};
  }
  if (status_) return {.kind = FaultKind::kReported, .text = *status_, .is_usage = is_usage_};
  if (unmarked_) {
    return {.kind = FaultKind::kOutside,
            .text = fmt::format("{}: {}", starter, noticed_ ? *noticed_ : *unmarked_)};
  }
  return {.kind = FaultKind::kOutside, .text = starter};
}

}  // namespace onebit::cluster
