// Reads a pickle (protocols 2 to 5) as data. Nothing is ever called: a name outside a fixed list of
// tensors and plain containers is an error that states the name, its path and offset. Memory is
// bounded for any pickle. Python, Lib/pickletools.py, describes the opcodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/data/formats/pickle_objects.h"
#include "onebit/data/formats/pickle_opcode.h"
#include "onebit/data/formats/pickle_value.h"
#include "onebit/ground/base/byte_reader.h"

namespace onebit::formats {

class Unpickler {
 public:
  // Texts of the result point into `bytes`. `place` is the path, `base` the offset of bytes[0].
  Unpickler(std::span<const std::byte> bytes, const std::string& place, uint64_t base);

  // Returns the first pickle of the bytes. Pickle::size_bytes is its end.
  Pickle run();

 private:
  bool step();  // false at the stop mark
  bool step_value(PickleOpcode opcode);
  bool step_container(PickleOpcode opcode);
  bool step_items(PickleOpcode opcode);
  bool step_memo(PickleOpcode opcode);
  bool step_object(PickleOpcode opcode);

  void push(PickleValue value) { push_index(objects_.add(std::move(value))); }
  void push_index(PickleIndex index);
  void push_integer(int64_t value);
  void push_text(std::string_view text);
  void push_long(uint64_t size_bytes);
  void push_global(std::string_view module, std::string_view name);
  PickleIndex pop();
  PickleIndex top() const;
  std::vector<PickleIndex> pop_to_mark();
  void push_tuple(size_t count);
  void put_memo(uint64_t slot);
  void get_memo(uint64_t slot);

  ByteReader reader_;
  PickleObjects objects_;
  std::vector<PickleIndex> stack_, memo_;
  std::vector<size_t> marks_;
};

}  // namespace onebit::formats
