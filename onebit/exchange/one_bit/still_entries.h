// Still entries of the compressed phase. A sign cannot represent zero, so an entry that had no
// gradient in the whole warm-up (its variance is exactly 0) is neither coded nor moved until its
// first gradient wakes it.
//
// Entries wake by rows (of a matrix, where a vector is one row). When a still entry of a row gets a
// gradient on any rank, the gradients of that row's still entries are averaged densely, once. Their
// variance becomes the mean square of that average over them, and their momentum becomes
// (1 - beta1) g / d: if the row's gradient keeps that size, it moves by the learning rate, as all
// other entries do.
//
// Held entries are still from the freeze on and never wake: rows that the recipe lists in
// `exp_avg_mask`, and what a declaration of the table holds (ParameterDeclaration::held).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/compress/owned_pieces.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::optim {

// The elements of `tensor` beyond its first `moving_rows` rows. Errors: no such tensor, fewer rows.
Range held_range(const ParameterTable& table, const std::string& tensor, int64_t moving_rows);

class StillEntries {
 public:
  // `moving_rows`: tensor -> number of rows that may move. Later ones are held. Errors: no such
  // tensor, more rows than it has.
  StillEntries(const ParameterTable& table, const std::map<std::string, int64_t>& moving_rows);

  View bitmap() const { return bitmap_.view(); }  // u8, in the layout of the sign codec
  static StateLayout layout(int64_t elements);
  // Makes held entries still. Called at the freeze after the bitmap was written.
  void hold(View momentum, View variance);
  // Finds the rows that may wake. Called after the bitmap was written or entries were held.
  void refresh();
  // Restores the bitmap from variance == 0 after a load.
  void restore(ConstView variance);

  // What identifies the entries that the table holds: null if there are none.
  Json held_by_table() const;

  // The number of still elements in parameters.
  int64_t count() const { return count_; }

  // Returns a mark for each row that may wake: whether its still entries have a gradient on this
  // rank. Reads only flagged blocks. Empty if there are none.
  std::vector<uint8_t> touched_rows(ConstView gradients, std::span<const uint8_t> block_flags);

  struct Wake {
    View variance;        // f32 [elements of the share], written for its entries that wake
    ConstView gradients;  // f32 [elements], of which the part in the share is this rank's
    // [blocks of the share]: the factor of the gradients of each block. Empty: 1
    std::span<const double> block_scales;
    double beta1 = 0.9, epsilon = 1e-8;
    // This rank's share and the number of sources. Empty: all elements, one source per rank.
    std::span<const compress::OwnedRange> shares = {};
    int sources = 0;
  };
  // Entries that have woken, and their initial momentum.
  struct Woken {
    Range range;
    std::vector<float> momentum;  // [elements of the range]
  };
  // Wakes the rows that any rank marked and returns their entries, the same on every rank.
  // Collective: every rank calls it, with its marks or none.
  std::vector<Woken> wake(comm::Communicator&, std::vector<uint8_t> touched, const Wake&);

 private:
  struct Row {
    int64_t begin, end;
  };
  bool is_still(int64_t element) const {
    return (bits_[static_cast<size_t>(element / 8)] >> (element % 8) & 1) != 0;
  }
  bool can_wake(int64_t element) const {
    const auto at = static_cast<size_t>(element / 8);
    return (bits_[at] >> (element % 8) & 1) != 0 &&
           (held_bits_.empty() || (held_bits_[at] >> (element % 8) & 1) == 0);
  }
  bool any_can_wake(int64_t begin, int64_t end) const;
  int64_t still_between(int64_t begin, int64_t end) const;
  void set_still(int64_t element, bool still);
  void add_rows(const Parameter& parameter);
  // Indices into rows_.
  std::vector<size_t> agreed_rows(comm::Communicator&, std::vector<uint8_t> touched) const;
  // The gradients of a row as far as this rank has them, scaled. 0 elsewhere.
  static std::vector<float> row_gradients(const Row& row, const Wake&);
  // Returns the number of entries that woke: all that may or none. Appends them to `woken`.
  int64_t wake_row(Row row, std::span<const float> gradient, const Wake&,
                   std::vector<Woken>& woken);
  void write_variance(const Row& row, double mean_square, const Wake&) const;
  void forget_rows(const std::vector<size_t>& awake);

  const ParameterTable& table_;
  std::vector<Range> held_;
  std::vector<uint8_t> held_bits_;  // a bitmap of them, empty if there are none
  Tensor bitmap_;                   // on the table's device
  std::vector<uint8_t> bits_;       // its copy on the host
  std::vector<Row> rows_;           // the rows that may wake
  int64_t count_ = 0;
};

}  // namespace onebit::optim
