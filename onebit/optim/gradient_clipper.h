// The norm of the gradient, agreed by all ranks, and the clip coefficient from it.
//
// Averaged gradients: the norm of the average. Local gradients (compressed phase): the average is
// not known before the exchange, so its norm is estimated as ratio * rms over ranks of the local
// norms. `ratio`, from 1 / sqrt(ranks) to 1, is measured over the steps that were observed in the
// warm-up (a running mean, weight 0.02, after 50) and then follows the optimizer's estimate
// (noise_ratio.h), so a threshold tuned in the warm-up means the same in the whole run.
#pragma once

#include <string>

#include "onebit/base/json.h"
#include "onebit/device/context.h"
#include "onebit/optim/optimizer.h"
#include "onebit/tensor/view.h"

namespace onebit::comm {
class Communicator;
}

namespace onebit::optim {

struct GradientNorm {
  bool finite = true;       // on every rank
  double norm = 0;          // of the (estimated) average, unscaled; 0 when not finite
  double coefficient = 1;   // min(1, threshold / norm)
  int first_bad_rank = -1;  // lowest rank whose gradient is not finite
};

class GradientClipper {
 public:
  // threshold 0: never clips, norms are still agreed.
  explicit GradientClipper(double threshold);

  // During the warm-up of an optimizer that will need local gradients: this rank's gradients of one
  // range, before they are averaged; the whole table once a step.
  void observe_local_gradients(Context&, ConstView gradients);

  // One collective of a few numbers. `gradients`: the whole flat buffer, multiplied by `unscale`
  // (1 / loss scale) when read.
  GradientNorm agree(Context&, comm::Communicator&, ConstView gradients, GradientNeed,
                     double unscale = 1);

  // Compressed phase: the ratio as the optimizer finds it; 0: it knows none yet.
  void follow(double ratio);

  double ratio() const { return ratio_; }
  // Where the number of ranks is another one, the share of noise in the average is kept, not the
  // ratio.
  Json save(int world_size) const;
  void load(const Json&, int world_size);

 private:
  void measure_ratio(double norm_of_average, double rms_of_norms);

  double threshold_;
  double observed_square_ = 0;
  bool observed_ = false;
  double ratio_ = 1;
  int64_t measurements_ = 0;
};

// For the message about a gradient that is not finite: "bert...weight[17] = nan" of the first bad
// element in the buffer, or an empty string.
std::string first_non_finite(const params::Table&);

}  // namespace onebit::optim
