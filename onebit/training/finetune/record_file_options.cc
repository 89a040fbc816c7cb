#include "onebit/training/finetune/record_file_options.h"

#include "onebit/ground/base/log.h"
#include "onebit/training/commands/recipe_options.h"

namespace onebit::finetune {

std::optional<FileFormat> RecordFileOptions::chosen_format() const {
  if (format == "tsv") return FileFormat::kTsv;
  if (format == "csv") return FileFormat::kCsv;
  if (format == "jsonl") return FileFormat::kJsonLines;
  return std::nullopt;
}

void RecordFileOptions::write_into(Json& recipe) const {
  if (format != "auto") commands::set_text(recipe, "data", "format", format);
  if (header) commands::set_text(recipe, "data", "header", *header ? "yes" : "no");
}

void add_record_file_options(commands::Command command, RecordFileOptions& options) {
  command
      .add_option("--format", options.format, "Format of the files: tsv (no quotes), csv or jsonl")
      .check(commands::one_of({"auto", "tsv", "csv", "jsonl"}))
      .default_str("by file extension");
  add_header_flags(command, options.header);
}

void add_header_flags(commands::Command command, std::optional<bool>& header) {
  command.add_flag_callback(
      "--header", [&header] { header = true; },
      "TSV and CSV begin with column names (the default, unless all columns are numbers)");
  command.add_flag_callback(
      "--no-header", [&header] { header = false; }, "TSV and CSV have no header line");
}

void replace_if_given(std::string& value, const std::string& given) {
  if (!given.empty()) value = given;
}

void warn_of_truncation(const std::string& file, int64_t cut, int64_t texts) {
  if (cut == 0) return;
  log_warning("{}: {} of {} texts were longer than the sequence length and were truncated", file,
              cut, texts);
}

}  // namespace onebit::finetune
