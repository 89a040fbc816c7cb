#include "onebit/ground/metrics/log_line.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/partial_file.h"
#include "onebit/ground/base/wording.h"

namespace onebit::metrics::log_line {

namespace {

constexpr std::pair<Kind, const char*> kKinds[] = {{Kind::kStep, "step"},
                                                   {Kind::kEvaluation, "evaluation"},
                                                   {Kind::kStart, "start"},
                                                   {Kind::kEnd, "end"}};

}  // namespace

Json begun(Kind kind, int64_t step) {
  const char* own = "";
  for (const auto& [one, name] : kKinds) {
    if (one == kind) own = name;
  }
  return {{kKind, own}, {kStep, step}};
}

std::optional<Kind> kind_of(const Json& line) {
  if (!line.is_object() || !line.contains(kKind)) return std::nullopt;
  for (const auto& [kind, name] : kKinds) {
    if (line.at(kKind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace onebit::metrics::log_line

namespace onebit::metrics {

namespace {

// Error: the line has no step.
int64_t step_of(std::string_view line, const std::string& place) {
  const Json object = parse_json(line, place);
  require(object.is_object() && object.contains(log_line::kStep) &&
              object[log_line::kStep].is_number_integer(),
          "{}: not an object with an integer \"{}\"", place, log_line::kStep);
  return object[log_line::kStep].get<int64_t>();
}

// A log damaged by a disk must not prevent training.
void keep_as_it_was(const Path& path, int64_t damaged, const std::string& first) {
  Path kept = path;
  kept += kDamagedSuffix;
  std::filesystem::copy_file(path, kept, std::filesystem::copy_options::overwrite_existing);
  log_warning("{}; {} left out, and the original file is {}", first,
              damaged == 1 ? "this line is" : counted(damaged, "such line") + " are",
              kept.string());
}

// Keeps the lines with a step up to `last_step`.
void drop_later_lines(const Path& path, int64_t last_step) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  PartialFile kept(path);
  std::string first_damaged;
  int64_t damaged = 0;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;  // cut short by a kill
    const std::string_view line = text.substr(begin, end - begin);
    const std::string place = fmt::format("{}, line {}", path.string(), number);
    try {
      if (step_of(line, place) <= last_step) kept.write(text.substr(begin, end + 1 - begin));
    } catch (const Error& error) {
      if (damaged++ == 0) first_damaged = error.what();
    }
    begin = end + 1;
  }
  if (kept.size_bytes() == text.size()) return;
  if (damaged > 0) keep_as_it_was(path, damaged, first_damaged);
  kept.finish();
}

}  // namespace

int64_t count_steps(const Path& path, int64_t last_step) {
  if (!std::filesystem::exists(path)) return 0;
  const std::string whole = json_text(log_line::begun(log_line::Kind::kStep, 0));
  const std::string_view beginning = std::string_view(whole).substr(0, whole.size() - 2);
  const MappedFile file(path);
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  int64_t count = 0;
  for (size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1)) {
    if (!text.starts_with(beginning)) continue;
    const std::string_view behind = text.substr(beginning.size(), end - beginning.size());
    const auto step = whole_number<int64_t>(behind.substr(0, behind.find_first_of(",}")));
    if (step && *step <= last_step) ++count;
  }
  return count;
}

JsonLinesWriter::JsonLinesWriter(const Path& path, int64_t last_step) {
  if (last_step == kNoStep) {
    std::error_code error;
    std::filesystem::remove(path, error);
    require(!error, "{}: cannot remove: {}", path.string(), error.message());
  } else if (std::filesystem::exists(path)) {
    drop_later_lines(path, last_step);
  } else if (last_step > 0) {
    log_warning("{}: does not exist; the run continues and logs from the step after {}",
                path.string(), last_step);
  }
  file_ = std::make_unique<AppendFile>(path);
}

void JsonLinesWriter::write(const Json& object) {
  ONEBIT_INVARIANT(object.is_object() && object.contains(log_line::kStep));
  file_->append(json_text(object) + "\n");
}

}  // namespace onebit::metrics
