#include "onebit/data/formats/unpickler.h"

#include <algorithm>
#include <utility>

#include "onebit/data/formats/pickle_objects.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

namespace {

constexpr uint8_t kHighestProtocol = 5;
constexpr size_t kMaxNameBytes = 512;

}  // namespace

Unpickler::Unpickler(std::span<const std::byte> bytes, const std::string& place, uint64_t base)
    : reader_(bytes.first(std::min(bytes.size(), kMaxPickleBytes)), place, base),
      objects_(reader_) {}

Pickle Unpickler::run() {
  while (step()) {
  }
  const PickleIndex root = pop();
  return objects_.finish(root, reader_.at());
}

bool Unpickler::step() {
  const auto opcode = static_cast<PickleOpcode>(reader_.number<uint8_t>());
  if (opcode == PickleOpcode::kStop) return false;
  if (step_value(opcode) || step_container(opcode) || step_memo(opcode) || step_object(opcode)) {
    return true;
  }
  reader_.refuse(
      fmt::format("not a pickle that torch writes: opcode 0x{:02x}", static_cast<int>(opcode)));
}

bool Unpickler::step_value(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kNone:
      push({PickleKind::kNone, 0, {}, {}});
      return true;
    case PickleOpcode::kNewTrue:
      push({PickleKind::kBoolean, 1, {}, {}});
      return true;
    case PickleOpcode::kNewFalse:
      push({PickleKind::kBoolean, 0, {}, {}});
      return true;
    case PickleOpcode::kBinInt:
      push_integer(reader_.number<int32_t>());
      return true;
    case PickleOpcode::kBinInt1:
      push_integer(reader_.number<uint8_t>());
      return true;
    case PickleOpcode::kBinInt2:
      push_integer(reader_.number<uint16_t>());
      return true;
    case PickleOpcode::kLong1:
      push_long(reader_.number<uint8_t>());
      return true;
    case PickleOpcode::kLong4:
      push_long(reader_.number<uint32_t>());
      return true;
    case PickleOpcode::kBinFloat:
      reader_.take(8);
      push({PickleKind::kOther, 0, {}, {}});
      return true;
    case PickleOpcode::kShortBinString:
    case PickleOpcode::kShortBinBytes:
    case PickleOpcode::kShortBinUnicode:
      push_text(reader_.take(reader_.number<uint8_t>()));
      return true;
    case PickleOpcode::kBinString:
    case PickleOpcode::kBinBytes:
    case PickleOpcode::kBinUnicode:
      push_text(reader_.take(reader_.number<uint32_t>()));
      return true;
    case PickleOpcode::kBinUnicode8:
    case PickleOpcode::kBinBytes8:
    case PickleOpcode::kByteArray8:
      push_text(reader_.take(reader_.number<uint64_t>()));
      return true;
    default:
      return false;
  }
}

bool Unpickler::step_container(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kMark:
      marks_.push_back(stack_.size());
      return true;
    case PickleOpcode::kEmptyTuple:
      push_tuple(0);
      return true;
    case PickleOpcode::kTuple1:
      push_tuple(1);
      return true;
    case PickleOpcode::kTuple2:
      push_tuple(2);
      return true;
    case PickleOpcode::kTuple3:
      push_tuple(3);
      return true;
    case PickleOpcode::kTuple:
      push({PickleKind::kTuple, 0, {}, pop_to_mark()});
      return true;
    case PickleOpcode::kEmptyList:
      push({PickleKind::kList, 0, {}, {}});
      return true;
    case PickleOpcode::kList:
      push({PickleKind::kList, 0, {}, pop_to_mark()});
      return true;
    case PickleOpcode::kEmptyDict:
      push({PickleKind::kDict, 0, {}, {}});
      return true;
    case PickleOpcode::kDict: {
      const auto items = pop_to_mark();
      push({PickleKind::kDict, 0, {}, {}});
      objects_.extend(top(), items);
      return true;
    }
    case PickleOpcode::kEmptySet:
      push({PickleKind::kOther, 0, {}, {}});
      return true;
    case PickleOpcode::kFrozenSet:
      pop_to_mark();
      push({PickleKind::kOther, 0, {}, {}});
      return true;
    default:
      return step_items(opcode);
  }
}

// Adds items to the container below them on the stack.
bool Unpickler::step_items(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kAppend: {
      const PickleIndex value = pop();
      objects_.extend(top(), {value});
      return true;
    }
    case PickleOpcode::kSetItem: {
      const PickleIndex value = pop(), key = pop();
      objects_.extend(top(), {key, value});
      return true;
    }
    case PickleOpcode::kAppends:
    case PickleOpcode::kSetItems:
    case PickleOpcode::kAddItems: {
      const auto items = pop_to_mark();
      objects_.extend(top(), items);
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::step_memo(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kProto:
      if (reader_.number<uint8_t>() > kHighestProtocol) {
        reader_.refuse(fmt::format("a pickle of a protocol above {}", kHighestProtocol));
      }
      return true;
    case PickleOpcode::kFrame:
      reader_.take(8);
      return true;
    case PickleOpcode::kPop:
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case PickleOpcode::kPopMark:
      pop_to_mark();
      return true;
    case PickleOpcode::kDup:
      push_index(top());
      return true;
    case PickleOpcode::kBinPut:
      put_memo(reader_.number<uint8_t>());
      return true;
    case PickleOpcode::kLongBinPut:
      put_memo(reader_.number<uint32_t>());
      return true;
    case PickleOpcode::kMemoize:
      put_memo(memo_.size());
      return true;
    case PickleOpcode::kBinGet:
      get_memo(reader_.number<uint8_t>());
      return true;
    case PickleOpcode::kLongBinGet:
      get_memo(reader_.number<uint32_t>());
      return true;
    default:
      return false;
  }
}

bool Unpickler::step_object(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kGlobal: {
      const std::string_view module = reader_.line(kMaxNameBytes);
      push_global(module, reader_.line(kMaxNameBytes));
      return true;
    }
    case PickleOpcode::kStackGlobal: {
      const PickleIndex name = pop(), module = pop();
      const PickleValue &module_text = objects_[module], &name_text = objects_[name];
      if (module_text.kind != PickleKind::kText || name_text.kind != PickleKind::kText) {
        reader_.refuse("a global whose name is not a text");
      }
      push_global(module_text.text, name_text.text);
      return true;
    }
    case PickleOpcode::kReduce:
    case PickleOpcode::kNewObj: {
      const PickleIndex arguments = pop(), function = pop();
      push_index(objects_.reduce(function, arguments));
      return true;
    }
    case PickleOpcode::kNewObjEx: {
      pop();  // keyword arguments
      const PickleIndex arguments = pop(), function = pop();
      push_index(objects_.reduce(function, arguments));
      return true;
    }
    case PickleOpcode::kBuild:  // attributes of an object, which no tensor needs
      pop();
      top();
      return true;
    case PickleOpcode::kBinPersId:
      push_index(objects_.new_storage(pop()));
      return true;
    default:
      return false;
  }
}

void Unpickler::push_index(PickleIndex index) {
  stack_.push_back(index);
}

void Unpickler::push_integer(int64_t value) {
  push({PickleKind::kInteger, value, {}, {}});
}

void Unpickler::push_text(std::string_view text) {
  push({PickleKind::kText, 0, text, {}});
}

// A two's complement number of any length. A number beyond 64 bits is kept as text.
void Unpickler::push_long(uint64_t size_bytes) {
  const std::string_view bytes = reader_.take(size_bytes);
  if (size_bytes > 8) return push({PickleKind::kOther, 0, bytes, {}});
  const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
  uint64_t value = negative ? ~uint64_t{0} : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  push_integer(static_cast<int64_t>(value));
}

void Unpickler::push_global(std::string_view module, std::string_view name) {
  const auto role = global_role(module, name);
  if (!role) {
    reader_.refuse(fmt::format(
        "the pickle asks for {}; onebit reads tensors and plain containers and runs nothing",
        quote(fmt::format("{}.{}", module, name))));
  }
  push({PickleKind::kGlobal, static_cast<int64_t>(*role), name, {}});
}

PickleIndex Unpickler::pop() {
  const PickleIndex index = top();
  stack_.pop_back();
  return index;
}

PickleIndex Unpickler::top() const {
  const size_t bottom = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= bottom) reader_.refuse("a damaged pickle: a value is missing");
  return stack_.back();
}

std::vector<PickleIndex> Unpickler::pop_to_mark() {
  if (marks_.empty()) reader_.refuse("a damaged pickle: a mark is missing");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleIndex> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

void Unpickler::push_tuple(size_t count) {
  std::vector<PickleIndex> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  push({PickleKind::kTuple, 0, {}, std::move(items)});
}

void Unpickler::put_memo(uint64_t slot) {
  // Picklers number slots upwards, so a slot's number never exceeds the bytes read so far.
  if (slot > reader_.at()) reader_.refuse("a damaged pickle: memo index out of order");
  if (slot >= memo_.size()) memo_.resize(slot + 1, 0);
  memo_[slot] = top() + 1;  // 0: an empty slot
}

void Unpickler::get_memo(uint64_t slot) {
  if (slot >= memo_.size() || memo_[slot] == 0) {
    reader_.refuse(fmt::format("a damaged pickle: memo {} is empty", slot));
  }
  push_index(memo_[slot] - 1);
}

}  // namespace onebit::formats
