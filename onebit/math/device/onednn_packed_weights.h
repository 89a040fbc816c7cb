// Copies of weights in the layouts in which oneDNN multiplies them fastest. Without one, every
// product rearranges the weights, which is felt when a batch has few tokens.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <map>
#include <vector>

#include "onebit/math/device/buffer.h"

namespace onebit {

class PackedWeights {
 public:
  // Promises that the memory in [begin, end) keeps its contents until changed() or remove(). It may
  // be promised several times; copies last until the last promise is taken back.
  void add(const void* begin, const void* end);
  // The memory that starts at `begin` was overwritten: its copies are made anew when they are used.
  void changed(const void* begin);
  // Takes the promise back and drops the copies of these weights.
  void remove(const void* begin);

  bool covers(const void* weights) const;
  // The copy of `weights`, which add() covers and `plain` describes, in `layout`.
  void* packed(const void* weights, const dnnl::memory::desc& plain,
               const dnnl::memory::desc& layout, dnnl::stream& stream);

 private:
  using Address = const std::byte*;
  struct Copy {
    // Of a square matrix and its transpose, which start at one address, the layouts are equal.
    dnnl::memory::desc plain, layout;
    Buffer values;
    bool current = false;
  };
  struct Range {
    Address end;
    int users = 0;
    std::map<Address, std::vector<Copy>> copies;  // by the address of the weights
  };
  using Ranges = std::map<Address, Range>;  // by their begin

  Ranges::const_iterator range_of(const void* weights) const;

  Ranges ranges_;
};

}  // namespace onebit
