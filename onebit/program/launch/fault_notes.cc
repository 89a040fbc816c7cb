#include "onebit/program/launch/fault_notes.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstring>
#include <utility>

namespace onebit::launch {
namespace {

// Part of the text that Open MPI's mpirun writes only about a rank that was ended by a signal: 4 in
// one line, which begins with "mpirun", and 5 in two, the first of which begins with "prterun".
// tests/launch/launcher_test.py runs it.
constexpr std::string_view kMpirunNoticed = "noticed that process rank";
constexpr size_t kLongestParagraph = 400;  // characters of a paragraph, which becomes one line

void keep_first(std::optional<std::string>& kept, std::string text) {
  if (!kept) kept = std::move(text);
}

std::string killed_text(const std::string& rank, int signal) {
  const char* hint =
      signal == SIGKILL ? "; probably out of memory, unless it was killed manually" : "";
  return fmt::format("{} was killed by signal {} ({}{})", rank, signal, ::strsignal(signal), hint);
}

// "Warning:", "WARNING:".
bool is_warning(const std::string& line) {
  return line.find("arning:") != std::string::npos || line.find("ARNING:") != std::string::npos;
}

// Whether the line is neither a rule nor blank.
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
    const std::optional<cluster::Ended> ended = parse_end(text);
    const std::string name = log_.name_of(line.rank);
    if (!ended) {
      keep_first(status_, fmt::format("the guard of {} reported \"{}\", which is unknown to this "
                                      "launcher: install the same onebit on all hosts",
                                      name, text));
    } else if (ended->signal != 0) {
      // The starter ends the other ranks with SIGTERM.
      keep_first(ended->signal == SIGTERM ? terminated_ : killed_,
                 killed_text(name, ended->signal));
    } else if (ended->status != 0) {
      const auto last = last_error_.find(line.rank);
      keep_first(status_, fmt::format("{} {}{}", name, ended->text(),
                                      last == last_error_.end() ? "" : ": " + last->second));
    }
  }
}

void FaultNotes::add_unmarked(const std::string& line) {
  // A warning in one line, such as "[node1:123] plm:ssh: Warning: ...", belongs to no paragraph.
  if (ending_ || (line.starts_with('[') && is_warning(line))) return;
  if (!has_words(line)) {
    is_inside_ = false;
    paragraph_ = nullptr;
    return;
  }
  const bool begins = !std::exchange(is_inside_, true);
  if (line.find(kMpirunNoticed) != std::string::npos && !noticed_) {
    noticed_ = line;
    paragraph_ = &noticed_;
  } else if (begins && !unmarked_ && !is_warning(line)) {
    unmarked_ = line;
    paragraph_ = &unmarked_;
  } else if (paragraph_ != nullptr && (*paragraph_)->size() + line.size() < kLongestParagraph) {
    **paragraph_ += ' ';
    (*paragraph_)->append(line, line.find_first_not_of(" \t"));
  }
}

void FaultNotes::found(const std::string& text) {
  keep_first(found_, text);
}

bool FaultNotes::any() const {
  return found_ || killed_ || reported_ || status_ || terminated_;
}

Cause FaultNotes::cause(const std::string& starter) const {
  if (found_) return {.kind = FaultKind::kOutside, .text = *found_};
  if (killed_) return {.kind = FaultKind::kOutside, .text = *killed_};
  if (reported_) {
    // A broken transfer is the consequence of something else, and may or may not recur.
    const bool is_outside = reported_kind_ == RunEvent::Kind::kFailedNetwork;
    return {.kind = is_outside ? FaultKind::kOutside : FaultKind::kReported,
            .text = *reported_,
            .is_usage = reported_kind_ == RunEvent::Kind::kFailedUsage};
  }
  // The program reports its own errors. This one comes from a library or the starter.
  if (status_) return {.kind = FaultKind::kOutside, .text = *status_};
  if (terminated_ && !noticed_) return {.kind = FaultKind::kOutside, .text = *terminated_};
  if (noticed_ || unmarked_) {
    return {.kind = FaultKind::kOutside,
            .text = fmt::format("{}: {}", starter, noticed_ ? *noticed_ : *unmarked_)};
  }
  return {.kind = FaultKind::kOutside, .text = starter};
}

}  // namespace onebit::launch
