#include "onebit/training/finetune/record_file_options.h"

#include "onebit/ground/base/log.h"

namespace onebit::finetune {

void add_record_file_options(const commands::KeyOptions& keys) {
  keys.add("--format", "data.format");
  keys.add_flag("--header", "data.header", "yes");
  keys.add_flag("--no-header", "data.header", "no");
}

void add_skip_bad_records(const commands::KeyOptions& keys) {
  keys.add_flag("--skip-bad-records", "data.skip_bad_records", "true");
}

void warn_of_truncation(const std::string& file, int64_t cut, int64_t texts) {
  if (cut == 0) return;
  log_warning("{}: {} of {} texts were longer than the sequence length and were truncated", file,
              cut, texts);
}

}  // namespace onebit::finetune
