// Rows of all arrays of a file of examples, in the form that the reading process sends.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::samples {

struct Hdf5Array {
  const char* name;
  bool required;
};
// The last array has one number per row, the others have lists.
inline constexpr std::array<Hdf5Array, 6> kHdf5Arrays = {{{"input_ids", true},
                                                          {"segment_ids", true},
                                                          {"input_mask", false},
                                                          {"masked_lm_positions", true},
                                                          {"masked_lm_ids", true},
                                                          {"next_sentence_labels", false}}};
inline constexpr size_t kHdf5Labels = kHdf5Arrays.size() - 1;

// Rows [first, first + rows) of an array.
struct Hdf5Rows {
  std::vector<uint32_t> lengths;  // [rows]
  std::vector<int32_t> numbers;   // of all rows
};

// Receives the rows of a file, front to back.
class Hdf5RowsSink {
 public:
  virtual ~Hdf5RowsSink() = default;
  // An absent array has no lengths.
  virtual void rows(uint64_t count, const std::array<Hdf5Rows, kHdf5Arrays.size()>& arrays) = 0;
};

// Reads the file with libhdf5 in this process. Errors: as listed at open_hdf5(), except the crash.
void read_hdf5(const Path& path, Hdf5RowsSink& sink);

}  // namespace onebit::samples
