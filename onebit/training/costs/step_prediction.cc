#include "onebit/training/costs/step_prediction.h"

#include <algorithm>

namespace onebit::costs {

PassTimes with_share_of_layers(const PassTimes& pass, double share) {
  if (share == 1 || pass.ready.size() < 3) return pass;
  const double begin = pass.ready.front().seconds;
  const double end = pass.ready[pass.ready.size() - 2].seconds;
  const double saved = (1 - share) * (end - begin);
  PassTimes shorter = pass;
  for (PassTimes::Ready& ready : shorter.ready) {
    ready.seconds -= (1 - share) * (std::clamp(ready.seconds, begin, end) - begin);
  }
  shorter.backward_seconds -= saved;
  shorter.forward_seconds -= std::min(saved / 2, pass.forward_seconds);
  return shorter;
}

std::vector<double> ready_seconds(const comm::Buckets& buckets, const PassTimes& pass) {
  std::vector<double> seconds(static_cast<size_t>(buckets.count()), pass.backward_seconds);
  comm::ReadyBuckets waiting(buckets);
  for (const PassTimes::Ready& ready : pass.ready) {
    for (const int64_t bucket : waiting.ready(ready.range)) {
      seconds[static_cast<size_t>(bucket)] = std::min(ready.seconds, pass.backward_seconds);
    }
  }
  return seconds;
}

StepPrediction predict_step(const comm::Buckets& buckets, const PhaseCosts& costs) {
  const PassTimes& pass = costs.pass;
  std::vector<double> ready = ready_seconds(buckets, pass);
  if (!costs.overlap) std::fill(ready.begin(), ready.end(), pass.backward_seconds);
  StepPrediction prediction;
  double packed = 0;  // the processor's time for the buckets so far
  double sent = 0;    // the moment the last bucket so far has arrived
  for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
    const double share = static_cast<double>(buckets.range(bucket).elements()) /
                         static_cast<double>(buckets.max_elements());
    const double wire = share * costs.bucket.wire_seconds;
    packed += share * costs.bucket.processor_seconds;
    sent = std::max(sent, ready[static_cast<size_t>(bucket)] + packed) + wire;
    prediction.exchange_seconds += wire;
  }
  const double computed = pass.backward_seconds + packed;
  prediction.waiting_seconds = std::max(sent - computed, 0.0);
  const auto micro_steps = static_cast<double>(costs.accumulation);
  prediction.step_seconds = (micro_steps - 1) * (pass.forward_seconds + pass.backward_seconds) +
                            pass.forward_seconds + std::max(sent, computed) + costs.update_seconds +
                            costs.agreement_seconds + costs.delay_seconds;
  return prediction;
}

}  // namespace onebit::costs
