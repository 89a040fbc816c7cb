// 1-bit Adam, 1-bit LAMB and 0/1 Adam of four ranks, on one level or two, implemented from
// docs/optimizers.md and docs/compression.md in double precision for the table and the gradients of
// Trial, with the reference codec of the compress floor's tests.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/compress/reference_codec.h"
#include "tests/optim/trial.h"

namespace onebit::optim {

using Doubles = std::vector<double>;

// The elements of a Trial's flat buffer.
struct TrialElements {
  std::vector<float> values;  // at the start
  std::vector<int64_t> places;
  std::vector<bool> exists, decays, looked_up;
  std::vector<std::string> tensors;  // empty: Adam, not LAMB
  std::vector<int> owners;           // with LAMB: the source that keeps the momentum

  static TrialElements of(const TrialOptions& options, bool lamb);
};

// 1-bit Adam and 1-bit LAMB, and the common part of all three.
class Restatement {
 public:
  static constexpr int kWorld = 4;
  static constexpr double kRate = 1e-3, kEpsilon = 1e-8, kDecay = 0.01;

  // Each of `sources` sends one gradient: the mean of an equal number of consecutive ranks.
  Restatement(TrialElements elements, int64_t freeze, int sources = kWorld);

  void step(int64_t number);
  const Doubles& values() const { return values_; }

 protected:
  static constexpr int64_t kBlock = 2048, kSubBlock = 256, kTurns = 9;

  double gradient(int source, int64_t number, int64_t i) const;
  double mean_gradient(int64_t number, int64_t i) const;
  // Counts an update in the weights of the moments.
  void count_update();
  // The fraction of the variance that this update keeps.
  double memory() const { return 1 - 0.001 / c2_; }
  // m / cm + weight decay, of `values`.
  double update_of(double momentum, size_t i, const Doubles& values) const;
  // Updates the values with `arrived` and `rate`, where `exact` are the owners' exact values.
  void apply(const Doubles& arrived, const Doubles& exact, double rate);
  void warm_up(int64_t number);
  void freeze();
  // Returns y of one source, and updates its variance and its sums.
  std::vector<float> normalize(int source, int64_t number, double memory);
  // Called after an exchange, for which one number per block is sent.
  void follow_level(double memory);

  TrialElements elements_;
  int64_t count_, freeze_;
  int sources_;
  Doubles values_;
  double c1_ = 0, c2_ = 0;
  Doubles m_, v_;             // of the warm-up, then m_ as received
  std::vector<Doubles> own_;  // variances of the compressed phase [sources]
  compress::reference::AllReduce all_reduce_;
  std::vector<uint8_t> still_;
  int64_t level_updates_ = 0;

 private:
  std::map<std::string, double> trust_ratios(const Doubles& momentum);
  void grow(int64_t turn, double memory, int64_t updates);
  void follow_noise();

  int64_t exchanges_ = 0;
  std::array<int64_t, kTurns> left_at_{};
  std::vector<Doubles> energy_, sketch_, block_energy_;  // [sources]
  Doubles mean_residual_;                                // of the owner of each element
  int cycles_ = 0;
  double local_ = 0, average_ = 0;  // one group of blocks
};

// Fails unless `found` equals `expected` except for a few elements: a sign of a value near zero, or
// the code of a scale, may differ by rounding, and error feedback then takes another course for
// this element or for the scale's block. `most`: the largest difference of these elements.
void expect_close(const TrialElements& elements, const Doubles& expected,
                  const std::vector<float>& found, double most);

}  // namespace onebit::optim
