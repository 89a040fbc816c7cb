// The stream of pickles and storages that torch.save wrote before 1.6: magic number, protocol,
// system, the object, the list of storage keys, then each storage as a count and its elements.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/formats/pickle_value.h"
#include "onebit/data/formats/torch_file.h"

namespace onebit::formats {

struct TorchStream {
  Pickle object;
  std::vector<TorchSpan> spans;  // one per storage of `object`
};

// Errors state `place`, the offset and the reason.
TorchStream read_torch_stream(std::span<const std::byte> file, const std::string& place);

}  // namespace onebit::formats
