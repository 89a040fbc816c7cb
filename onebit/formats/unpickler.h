// Reads a pickle (protocols 2 to 5) as data. Nothing is ever called: a name outside a fixed list of
// tensors and plain containers is an error that gives the name, its path and offset. Memory is
// bounded whatever the pickle says. Python, Lib/pickletools.py, describes the opcodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onebit/formats/byte_reader.h"
#include "onebit/formats/pickle_globals.h"
#include "onebit/formats/pickle_opcode.h"
#include "onebit/formats/pickle_value.h"

namespace onebit::formats {

inline constexpr size_t kMostPickleBytes = size_t{64} << 20;
inline constexpr size_t kMostPickleValues = size_t{4} << 20;

class Unpickler {
 public:
  // Texts of the result point into `bytes`. `place` is the path, `base` the offset of bytes[0].
  Unpickler(std::span<const std::byte> bytes, const std::string& place, uint64_t base);

  // The first pickle of the bytes; Pickle::size_bytes says where it ends.
  Pickle run();

 private:
  bool step();  // false at the stop mark
  bool step_value(PickleOpcode opcode);
  bool step_container(PickleOpcode opcode);
  bool step_items(PickleOpcode opcode);
  bool step_memo(PickleOpcode opcode);
  bool step_object(PickleOpcode opcode);

  PickleIndex add(PickleValue value);
  void push(PickleValue value) { push_index(add(std::move(value))); }
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

  void extend(PickleIndex container, const std::vector<PickleIndex>& items);
  // What calling `function` with `arguments` gives, for the functions of pickle_globals.h.
  PickleIndex reduce(PickleIndex function, PickleIndex arguments);
  PickleIndex new_dict(const PickleValue& arguments);
  PickleIndex new_tensor(const PickleValue& arguments);
  PickleIndex new_storage(PickleIndex identity);
  // Counts what is built out of shared values: a few bytes may ask for it again and again.
  void spend(size_t numbers);
  const PickleValue& item(const PickleValue& tuple, size_t index, const char* what) const;
  int64_t integer(const PickleValue& value, const char* what) const;
  std::vector<int64_t> integers(const PickleValue& value, const char* what) const;

  ByteReader reader_;
  Pickle pickle_;
  std::vector<PickleIndex> stack_, memo_;
  std::vector<size_t> marks_;
  size_t spent_ = 0;
  std::unordered_map<std::string_view, size_t> storages_by_key_;
};

}  // namespace onebit::formats
