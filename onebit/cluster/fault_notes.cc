#include "onebit/cluster/fault_notes.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstring>

namespace onebit::cluster {
namespace {

// Part of the text that Open MPI's mpirun (4.1) writes only about a rank that was ended by a
// signal. tests/cluster/launcher_test.py runs it.
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
    const std::optional<Ended> ended = parse_end(text);
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
  if (ending_) return;
  if (!has_words(line)) {
    paragraph_goes_on_ = false;
    return;
  }
  if (line.find(kMpirunNoticed) != std::string::npos) keep_first(noticed_, line);
  if (!unmarked_) {
    unmarked_ = line;
    paragraph_goes_on_ = true;
  } else if (paragraph_goes_on_ && unmarked_->size() + line.size() < kLongestParagraph) {
    *unmarked_ += ' ';
    *unmarked_ += line.substr(line.find_first_not_of(" \t"));
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
  // The program reports its own errors; this one comes from a library or the starter.
  if (status_) return {.kind = FaultKind::kOutside, .text = *status_};
  if (terminated_ && !noticed_) return {.kind = FaultKind::kOutside, .text = *terminated_};
  if (unmarked_) {
    return {.kind = FaultKind::kOutside,
            .text = fmt::format("{}: {}", starter, noticed_ ? *noticed_ : *unmarked_)};
  }
  return {.kind = FaultKind::kOutside, .text = starter};
}

}  // namespace onebit::cluster
