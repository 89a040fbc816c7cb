// What a run reports to the program that has started it (onebit launch): an event a line, on the
// descriptor that the environment names. Writer and reader of these lines stand here together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onebit {

// The variable that holds the descriptor's number.
inline constexpr const char* kEventsVariable = "ONEBIT_EVENTS_FD";

struct RunEvent {
  enum class Kind {
    kBegin,     // training begins after `step` updates
    kStep,      // update `step` is made, or skipped; once more where steps continue after a phase
    kPhase,     // what follows, named by `text`, is no step and may take longer than one
    kSaved,     // a checkpoint of `step` is whole, on every disk that holds a part of it
    kStopped,   // the run was asked to end and has a checkpoint of `step`
    kFinished,  // after `step` updates
    kFailed,    // of this rank: `text` says why; the same will happen again
    kFailedNetwork,  // of this rank: a transfer between ranks broke, and may work another time
    kFailedUsage,    // the command line is wrong
  };

  Kind kind = Kind::kStep;
  int64_t step = 0;  // of the kinds that say so
  std::string text;  // of the others, one line
};

// "step 12", "failed out of memory": without the end of the line; of a text its first line.
std::string line_of(const RunEvent& event);
// The reverse; nothing for another line.
std::optional<RunEvent> parse_run_event(std::string_view line);

// Writes the event where the environment asks for it; does nothing elsewhere. A reader that has
// gone is no error of the run.
void report_run_event(const RunEvent& event);

}  // namespace onebit
