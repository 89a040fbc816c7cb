// Entries that stay still in the compressed phase: a sign cannot say zero, so what had no gradient
// in the whole warm-up (its variance is exactly 0) is neither coded nor moved, until its first
// gradient wakes it.
//
// Entries wake by rows (of a matrix; a vector is one row): when a still entry of a row gets a
// gradient on any rank, the gradients of that row's still entries are averaged densely, once, and
// their variance becomes the mean square of that average over them, and their momentum
// (1 - beta1) g / d: a row whose gradient goes on at that size moves by the learning rate, as
// everything else does.
//
// Rows that the recipe holds (`exp_avg_mask`) are still from the freeze on and never wake.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/params/table.h"
#include "onebit/tensor/tensor.h"

namespace onebit::optim {

// The elements of `tensor` beyond its first `moving_rows` rows. Errors: no such tensor, fewer rows.
params::Range held_range(const params::Table& table, const std::string& tensor,
                         int64_t moving_rows);

class StillEntries {
 public:
  // `moving_rows`: tensor -> its rows that may move; later ones are held. Errors: no such tensor,
  // more rows than it has.
  StillEntries(const params::Table& table, const std::map<std::string, int64_t>& moving_rows);

  View bitmap() const { return bitmap_.view(); }  // u8, as the sign codec wants it
  // At the freeze, after the bitmap was written: makes held rows still.
  void hold(View momentum, View variance);
  // After the bitmap was written or held rows were added: learns the rows that may wake.
  void refresh();
  // After a load: the bitmap from variance == 0.
  void restore(ConstView variance);

  // Still elements of parameters.
  int64_t count() const { return count_; }

  // Marks (one a row that may wake) of the rows whose still entries have a gradient on this rank,
  // looking only at flagged blocks; empty when there are none.
  std::vector<uint8_t> touched_rows(ConstView gradients, std::span<const uint8_t> block_flags);

  struct Wake {
    View momentum, variance;  // f32 [elements], written for the entries that wake
    ConstView gradients;      // f32 [elements], this rank's
    // [blocks of 2048]: what the gradients of each are multiplied by; empty: 1
    std::span<const double> block_scales;
    double beta1 = 0.9, epsilon = 1e-8;
  };
  // Wakes what any rank touched and returns it, the same on every rank. Collective: every rank
  // calls it, with its marks or none.
  std::vector<params::Range> wake(comm::Communicator&, std::vector<uint8_t> touched, const Wake&);

 private:
  struct Row {
    int64_t begin, end;
  };
  bool is_still(int64_t element) const {
    return (bits_[static_cast<size_t>(element / 8)] >> (element % 8) & 1) != 0;
  }
  int64_t still_between(int64_t begin, int64_t end) const;
  void set_still(int64_t element, bool still);
  void add_rows(const params::Parameter& parameter);
  // Indices into rows_.
  std::vector<size_t> agreed_rows(comm::Communicator&, std::vector<uint8_t> touched) const;
  // How many entries woke: all that were still, or none. Adds them to `woken`.
  int64_t wake_row(Row row, std::span<const float> gradient, const Wake&,
                   std::vector<params::Range>& woken);
  void forget_rows(const std::vector<size_t>& awake);

  const params::Table& table_;
  std::vector<params::Range> held_;
  Tensor bitmap_;              // on the table's device
  std::vector<uint8_t> bits_;  // the same, here
  std::vector<Row> rows_;      // that may wake
  int64_t count_ = 0;
};

}  // namespace onebit::optim
