// Options of commands that read TSV, CSV or JSON lines.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/training/commands/key_options.h"

namespace onebit::finetune {

// --format, --header, --no-header.
void add_record_file_options(const commands::KeyOptions& keys);

// --skip-bad-records, of commands that train or are evaluated on files of records.
void add_skip_bad_records(const commands::KeyOptions& keys);

// Logs a warning if some of the `texts` texts of a file were cut.
void warn_of_truncation(const std::string& file, int64_t cut, int64_t texts);

}  // namespace onebit::finetune
