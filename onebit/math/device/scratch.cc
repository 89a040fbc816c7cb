#include "onebit/math/device/scratch.h"

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"

namespace onebit {
namespace {

constexpr int64_t kAlignmentBytes = 256;  // required by CUDA devices, more than the CPU needs

}  // namespace

Scratch::Block Scratch::take(int64_t size_bytes) {
  ONEBIT_INVARIANT(size_bytes >= 0);
  const int64_t rounded = (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  std::byte* data = nullptr;
  if (overflow_.empty() && taken_bytes_ + rounded <= main_.size_bytes()) {
    data = main_.data() + taken_bytes_;
  } else {
    overflow_.emplace_back(device_, std::max(rounded, kAlignmentBytes));
    data = overflow_.back().data();
  }
  taken_bytes_ += rounded;
  peak_bytes_ = std::max(peak_bytes_, taken_bytes_);
  return {this, data, rounded};
}

void Scratch::give_back(int64_t size_bytes) {
  taken_bytes_ -= size_bytes;
  if (taken_bytes_ > 0 || overflow_.empty()) return;
  overflow_.clear();
  main_ = Buffer();
  try {
    main_ = Buffer(device_, peak_bytes_);
  } catch (const Error& error) {
    // An exception may be in flight, and throwing here would end the process. take() throws later.
    if (!warned_) {
      log_warning(
          "every operation allocates its temporary memory anew from here on, which is slow: {}",
          error.what());
    }
    warned_ = true;
  }
}

}  // namespace onebit
