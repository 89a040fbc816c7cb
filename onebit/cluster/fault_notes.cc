#include "onebit/cluster/fault_notes.h"

#include <fmt/format.h>
#include <signal.h>

#include <charconv>
#include <cstring>

namespace onebit::cluster {
namespace {

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

// Not a rule or a blank line.
bool has_words(const std::string& line) {
  return line.find_first_not_of(" -\t=*") != std::string::npos;
}

}  // namespace

void FaultNotes::add(int rank, const RunEvent& event) {
  using Kind = RunEvent::Kind;
  const bool is_failure = event.kind == Kind::kFailed || event.kind == Kind::kFailedNetwork ||
                          event.kind == Kind::kFailedUsage;
  if (ending_ || reported_ || !is_failure) return;
  reported_ = fmt::format("{}: {}", log_.name_of(rank), event.text);
  reported_kind_ = event.kind;
}

void FaultNotes::add(const RankLine& line) {
  if (ending_) return;
  const std::string& text = line.text;
  if (line.kind == LineKind::kError) {
    if (has_words(text)) last_error_[line.rank] = text;
  } else if (line.kind == LineKind::kEnd) {
    const int value = number(std::string_view(text).substr(text.find(' ') + 1));
    const std::string name = log_.name_of(line.rank);
    if (text.starts_with("signal ")) {
      // The starter ends the other ranks with SIGTERM.
      keep_first(value == SIGTERM ? status_ : killed_, killed_text(name, value));
    } else if (value != 0) {
      const auto last = last_error_.find(line.rank);
      keep_first(status_, fmt::format("{} ended with status {}{}", name, value,
                                      last == last_error_.end() ? "" : ": " + last->second));
    }
  }
}

void FaultNotes::add_unmarked(const std::string& line) {
  if (ending_ || !has_words(line)) return;
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
  if (reported_) {
    // A broken transfer follows from something else, and may come again or not.
    const bool is_outside = reported_kind_ == RunEvent::Kind::kFailedNetwork;
    return {.kind = is_outside ? FaultKind::kOutside : FaultKind::kReported,
            .text = *reported_,
            .is_usage = reported_kind_ == RunEvent::Kind::kFailedUsage};
  }
  if (status_) return {.kind = FaultKind::kReported, .text = *status_};
  if (unmarked_) {
    return {.kind = FaultKind::kOutside,
            .text = fmt::format("{}: {}", starter, noticed_ ? *noticed_ : *unmarked_)};
  }
  return {.kind = FaultKind::kOutside, .text = starter};
}

}  // namespace onebit::cluster
