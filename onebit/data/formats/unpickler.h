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
#include "onebit/ground/base/byte_reader.h"

namespace onebit::formats {

// Opcodes of pickle protocols 1 to 5, as in Python's Lib/pickletools.py. Opcodes of protocol 0 that
// hold numbers and texts as lines are left out, since torch never wrote them.
enum class PickleOpcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

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
