// Whether a failed attempt is followed by another, and when.
#pragma once

#include <cstdint>
#include <string>

namespace onebit::cluster {

// Where the fault of an attempt lies: the program said so itself (a wrong recipe, gradients that
// are not finite: it will say so again), or something happened to it.
enum class FaultKind { kReported, kOutside };

struct Failure {
  FaultKind kind = FaultKind::kOutside;
  std::string cause;       // one line
  int64_t step = -1;       // the last one that was seen
  std::string checkpoint;  // the one that the run continues from now; empty: none
  bool begun = true;       // this or an earlier attempt of the launch has begun to train
};

struct RestartDecision {
  bool restart = false;
  double pause_seconds = 0;
  std::string reason;  // why there is no restart
};

class RestartPolicy {
 public:
  // So many restarts in a row that no new checkpoint lies between; the first pause, which doubles
  // until it is 60 times as long.
  RestartPolicy(int max_restarts, double first_pause_seconds);

  // After a failed attempt. An error that the program reports ends the run at once where no attempt
  // has begun to train (what was given is wrong), and where it comes twice in a row at the same
  // step; anything else ends it the third time.
  RestartDecision after(const Failure& failure);

 private:
  int max_restarts_;
  double first_pause_seconds_;
  int restarts_ = 0;  // since the last new checkpoint
  int repeated_ = 0;  // attempts in a row that ended like the last
  Failure last_;
};

}  // namespace onebit::cluster
