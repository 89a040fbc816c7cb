// Copies of weights in the layouts in which oneDNN multiplies them fastest. Without one, every
// product rearranges the weights, which is felt when a batch has few tokens.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <map>
#include <vector>

#include "onebit/device/buffer.h"

namespace onebit {

class PackedWeights {
 public:
  // Promises that the memory in [begin, end) keeps its contents until remove().
  void add(const void* begin, const void* end);
  // Takes the promise back and drops the copies of these weights.
  void remove(const void* begin);

  bool covers(const void* weights) const;
  // The copy of `weights`, which add() covers and `plain` describes, in `layout`.
  void* packed(const void* weights, const dnnl::memory::desc& plain,
               const dnnl::memory::desc& layout, dnnl::stream& stream);

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };
  struct Copy {
    dnnl::memory::desc layout;
    Buffer values;
  };

  std::vector<Range> ranges_;
  std::map<const std::byte*, std::vector<Copy>> copies_;  // by the address of the weights
};

}  // namespace onebit
