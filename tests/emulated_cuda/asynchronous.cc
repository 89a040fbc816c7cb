#include "tests/emulated_cuda/asynchronous.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tests/emulated_cuda/device_language.h"

namespace emulated_cuda {

void AsyncCopies::reset() {
  started_.clear();
  groups_ = 0;
}

void AsyncCopies::start(SharedMemory& shared, const AsyncCopy& copy) {
  shared.fill_piece(copy.to, 0xFF, copy.size_bytes);
  if (copy.exists && reinterpret_cast<uintptr_t>(copy.from) % copy.size_bytes != 0) {
    fault("an asynchronous copy from an address that is no multiple of its size");
  }
  started_.push_back({copy, kNoGroup});
}

void AsyncCopies::end_group() {
  for (Started& one : started_) {
    if (one.group == kNoGroup) one.group = groups_;
  }
  ++groups_;
}

bool AsyncCopies::wait(SharedMemory& shared, size_t left) {
  const auto arrives = [&](const Started& one) {
    return one.group != kNoGroup && one.group + left < groups_;
  };
  for (const auto& [copy, group] : started_) {
    if (!arrives({copy, group})) continue;
    shared.fill_piece(copy.to, 0, copy.size_bytes);
    if (copy.exists) shared.write_piece(copy.to, copy.from, copy.size_bytes);
  }
  return std::erase_if(started_, arrives) > 0;
}

void AsyncProducts::reset() {
  started_.clear();
  calls_ = {};
  copies_hidden_ = false;
  registers_hidden_ = true;
}

void AsyncProducts::start(float* result, size_t count, std::function<void(float*)> compute) {
  ++calls_.starts;
  if (copies_hidden_) fault("a product before copies were made visible to it");
  if (registers_hidden_) fault("a product before registers were made visible to it");
  Started product{result, {}, std::move(compute), false};
  const bool goes_on =
      std::ranges::any_of(started_, [&](const Started& one) { return one.result == result; });
  if (!goes_on) {
    product.values.assign(result, result + count);
    std::fill(result, result + count, std::numeric_limits<float>::quiet_NaN());
  }
  started_.push_back(std::move(product));
}

void AsyncProducts::end_group() {
  ++calls_.groups;
  for (Started& one : started_) one.grouped = true;
}

void AsyncProducts::wait() {
  ++calls_.waits;
  for (Started& one : started_) {
    if (!one.grouped) continue;
    std::ranges::copy(one.values, one.result);
    one.compute(one.result);
  }
  std::erase_if(started_, [](const Started& one) { return one.grouped; });
  registers_hidden_ = true;
}

void AsyncProducts::end_thread() const {
  if (!started_.empty()) fault("a thread ends without waiting for its products");
}

}  // namespace emulated_cuda
