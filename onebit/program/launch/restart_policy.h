// Decides whether a failed attempt is followed by another, and when.
#pragma once

#include <cstdint>
#include <string>

namespace onebit::launch {

// The origin of an attempt's failure: an error that the program reported itself (a wrong recipe,
// gradients that are not finite) and will report again, or an event from outside.
enum class FaultKind { kReported, kOutside };

struct Failure {
  FaultKind kind = FaultKind::kOutside;
  std::string cause;       // one line
  int64_t step = -1;       // the last one seen
  std::string checkpoint;  // tag of the one to continue from. Empty: none
  bool begun = true;       // this or an earlier attempt of the launch has begun to train
};

struct RestartDecision {
  bool restart = false;
  double pause_seconds = 0;
  std::string reason;  // why there is no restart
};

class RestartPolicy {
 public:
  // `max_restarts` is the number of restarts in a row without a new checkpoint. The pause before a
  // restart starts at `first_pause_seconds` and doubles up to 60 times that.
  RestartPolicy(int max_restarts, double first_pause_seconds);

  // Decides after a failed attempt. An error that the program reports ends the run at once if no
  // attempt has begun to train (the input is wrong), and at its second occurrence in a row at the
  // same step. Any other failure ends it at the third.
  RestartDecision after(const Failure& failure);

 private:
  int max_restarts_;
  double first_pause_seconds_;
  int restarts_ = 0;  // since the last new checkpoint
  int repeated_ = 0;  // attempts in a row with the same failure
  Failure last_;
};

}  // namespace onebit::launch
