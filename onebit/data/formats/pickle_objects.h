// The values of a pickle while it is read, and the results of the few functions that it may name:
// dicts, storages, tensors. Nothing is called, and memory is bounded for any pickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/formats/pickle_value.h"
#include "onebit/ground/base/byte_reader.h"

namespace onebit::formats {

inline constexpr size_t kMaxPickleBytes = size_t{64} << 20;
inline constexpr size_t kMaxPickleValues = size_t{4} << 20;

class PickleObjects {
 public:
  // Errors state the path of `reader`, which must outlive this, and its current offset.
  explicit PickleObjects(const ByteReader& reader) : reader_(reader) {}
  PickleObjects(const PickleObjects&) = delete;
  PickleObjects& operator=(const PickleObjects&) = delete;

  const PickleValue& operator[](PickleIndex index) const { return pickle_.values[index]; }
  PickleIndex add(PickleValue value);
  // Adds items to a list or a dict. A kOther value drops them.
  void extend(PickleIndex container, const std::vector<PickleIndex>& items);
  // The result of `function` with `arguments`, for the functions of pickle_globals.h.
  PickleIndex reduce(PickleIndex function, PickleIndex arguments);
  // The storage of a persistent id.
  PickleIndex new_storage(PickleIndex identity);

  Pickle finish(PickleIndex root, size_t size_bytes);

 private:
  PickleIndex new_dict(const PickleValue& arguments);
  PickleIndex new_tensor(const PickleValue& arguments);
  // Counts values built from shared ones: a few bytes may request this again and again.
  void spend(size_t numbers);
  const PickleValue& item(const PickleValue& tuple, size_t index, const char* what) const;
  int64_t integer(const PickleValue& value, const char* what) const;
  std::vector<int64_t> integers(const PickleValue& value, const char* what) const;

  const ByteReader& reader_;
  Pickle pickle_;
  size_t spent_ = 0;
  std::unordered_map<std::string_view, size_t> storages_by_key_;
};

}  // namespace onebit::formats
