// The fields of one record of a CSV file (RFC 4180): separated by commas, and quoted if they
// contain a comma, a quote (doubled) or a line end.
#pragma once

#include <string>
#include <vector>

#include "onebit/data/corpus/file_lines.h"

namespace onebit::finetune {

// Splits `line`, which was read from `lines`; a quoted field that is not closed in it continues in
// the next lines. Overwrites `fields`. Errors, with file:line and the field's number: a quote that
// is never closed, text after a closing quote.
void csv_fields(corpus::FileLines& lines, std::string& line, std::vector<std::string>& fields);

}  // namespace onebit::finetune
