// The texts in a block of JSON lines.
#pragma once

#include <functional>
#include <string_view>

#include "onebit/data/corpus/left_out_records.h"
#include "onebit/data/corpus/text_source.h"

namespace onebit::corpus {

// Calls body(document) for the "text" of every JSON line of the block. Errors, with path and line,
// or records that are counted in `left_out`: not JSON (data_json.h), not an object, no "text", one
// that is not a string.
void for_each_json_text(const TextBlock& block, LeftOutRecords& left_out,
                        const std::function<void(std::string_view)>& body);

}  // namespace onebit::corpus
