// Determines which updates of 0/1 Adam exchange what (Lu et al., arXiv 2202.06009, with the
// intervals of DeepSpeed). Updates are numbered from 1.
//
// The first `variance_scaler` updates average gradients densely. Then, until `variance_freeze`,
// updates whose number is a multiple of the variance interval do so as well; the interval starts at
// 1 and doubles after every `variance_scaler` of them; the others exchange one bit per element.
// After `variance_freeze` an update exchanges one bit if its number is a multiple of the local
// interval, else nothing: that starts at 1 and doubles after every `local_scaler` updates, up to
// `local_limit`. The run's last update always exchanges: its model is that of the last exchange.
#pragma once

#include <cstdint>

namespace onebit::optim {

struct ZeroOneOptions {
  int64_t variance_freeze = 100000, variance_scaler = 16;
  int64_t local_scaler = 32678, local_limit = 16;
  int64_t last_update = 0;  // of the run; 0: not known
};

class ZeroOneSchedule {
 public:
  enum class Kind {
    kDense,        // gradients are averaged, as in the warm-up of 1-bit Adam
    kRefresh,      // gradients are averaged, and the compressed exchange is made as well
    kOneBit,       // the compressed exchange alone
    kSynchronize,  // the compressed exchange of the sum over the updates since the last one
    kLocal         // nothing is exchanged
  };

  // As after `updates` updates by these options, whatever the options of the run were then.
  explicit ZeroOneSchedule(const ZeroOneOptions& options, int64_t updates = 0);

  // The kind of the update after those that advance() has counted.
  Kind next() const;
  void advance();
  const ZeroOneOptions& options() const { return options_; }
  int64_t local_interval() const { return local_interval_; }

 private:
  ZeroOneOptions options_;
  int64_t updates_ = 0;
  int64_t variance_interval_ = 1, dense_in_interval_ = 0;
  int64_t local_interval_ = 1, updates_in_interval_ = 0;
};

// Numbers of the first `updates` by what they exchange.
struct ZeroOneCounts {
  int64_t dense = 0;    // averages of gradients
  int64_t one_bit = 0;  // compressed exchanges, with or without averages
  int64_t nothing = 0;  // neither
};
ZeroOneCounts count_exchanges(const ZeroOneOptions& options, int64_t updates);

// The local interval at the last of `updates`, which is the longest.
int64_t longest_interval(const ZeroOneOptions& options, int64_t updates);

}  // namespace onebit::optim
