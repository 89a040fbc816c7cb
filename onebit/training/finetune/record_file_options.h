// Options of commands that read TSV, CSV or JSON lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onebit/ground/base/json_fwd.h"
#include "onebit/training/commands/command_line.h"
#include "onebit/training/finetune/record_reader.h"

namespace onebit::finetune {

struct RecordFileOptions {
  std::string format = "auto";
  std::optional<bool> header;

  // Absent: by the file's ending.
  std::optional<FileFormat> chosen_format() const;
  // Writes what was given into the recipe: data.format, data.header.
  void write_into(Json& recipe) const;
};

// --format, --header, --no-header.
void add_record_file_options(commands::Command command, RecordFileOptions& options);
// --header, --no-header.
void add_header_flags(commands::Command command, std::optional<bool>& header);

// Overwrites `value`, a column's name, if one was given.
void replace_if_given(std::string& value, const std::string& given);

// Logs a warning if some of the `texts` texts of a file were cut.
void warn_of_truncation(const std::string& file, int64_t cut, int64_t texts);

}  // namespace onebit::finetune
