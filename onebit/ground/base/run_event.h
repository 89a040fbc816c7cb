// Events that a run reports to the program that started it (onebit launch): one per line, on the
// descriptor that the environment names. Writer and parser of these lines are both in this file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onebit {

// The environment variable that holds the descriptor's number.
inline constexpr const char* kEventsVariable = "ONEBIT_EVENTS_FD";

struct RunEvent {
  enum class Kind {
    kBegin,    // training begins after `step` updates
    kStep,     // update `step` was made or skipped (repeated when steps resume after a phase)
    kPhase,    // a phase that is not a step begins, named by `text`. It may take longer than a step
    kSaved,    // the checkpoint of `step` is complete on every disk that holds a part of it
    kStopped,  // the run ended on request and has a checkpoint of `step`
    kFinished,       // the run completed after `step` updates
    kFailed,         // this rank failed for the reason `text`, and a restart would fail again
    kFailedNetwork,  // a transfer between ranks broke, and a restart may succeed
    kFailedUsage,    // the command line is wrong
  };

  Kind kind = Kind::kStep;
  int64_t step = 0;  // for the kinds above that name it
  std::string text;  // for the other kinds, one line
};

// "step 12", "failed out of memory": without a newline, only the first line of a text.
std::string line_of(const RunEvent& event);
// The inverse of line_of(), or nothing for any other line.
std::optional<RunEvent> parse_run_event(std::string_view line);

// Writes the event if the environment names a descriptor. It is not an error of the run if the
// reader has gone.
void report_run_event(const RunEvent& event);

}  // namespace onebit
