// Reports how far a run is to what has started it (onebit launch): a line an event, on the descriptor
// that the environment names. Without one, and on ranks other than 0, nothing is reported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace onebit::training {

inline constexpr const char* kEventsVariable = "ONEBIT_EVENTS_FD";

class RunEvents {
 public:
  explicit RunEvents(int rank);

  // "begin N": training begins after N updates.
  void begin(int64_t step) const;
  // "step N": an update is made, or skipped; once more after a phase, where the next step begins.
  void step(int64_t step) const;
  // "phase NAME": what follows is no step and may take longer than one.
  void phase(std::string_view name) const;
  // "stopped N": asked to end, with a checkpoint of step N.
  void stopped(int64_t step) const;
  // "finished N".
  void finished(int64_t step) const;

 private:
  // A launcher that has gone is no error of the run: it ends the run by other means.
  void put(const std::string& line) const;

  int descriptor_ = -1;
};

}  // namespace onebit::training
