#include "onebit/ground/base/run_event.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "onebit/ground/base/number.h"

namespace onebit {
namespace {

struct Form {
  RunEvent::Kind kind;
  std::string_view name;
  bool has_step;
};

constexpr Form kForms[] = {
    {RunEvent::Kind::kBegin, "begin", true},
    {RunEvent::Kind::kStep, "step", true},
    {RunEvent::Kind::kPhase, "phase", false},
    {RunEvent::Kind::kSaved, "saved", true},
    {RunEvent::Kind::kStopped, "stopped", true},
    {RunEvent::Kind::kFinished, "finished", true},
    {RunEvent::Kind::kFailed, "failed", false},
    {RunEvent::Kind::kFailedNetwork, "failed-network", false},
    {RunEvent::Kind::kFailedUsage, "failed-usage", false},
};

}  // namespace

std::string line_of(const RunEvent& event) {
  for (const Form& form : kForms) {
    if (form.kind != event.kind) continue;
    if (form.has_step) return fmt::format("{} {}", form.name, event.step);
    return fmt::format("{} {}", form.name,
                       std::string_view(event.text).substr(0, event.text.find('\n')));
  }
  return "";
}

std::optional<RunEvent> parse_run_event(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  for (const Form& form : kForms) {
    if (form.name != line.substr(0, blank)) continue;
    RunEvent event{.kind = form.kind, .step = 0, .text = ""};
    const std::string_view rest = line.substr(blank + 1);
    if (!form.has_step) {
      event.text = rest;
    } else if (const auto step = whole_number<int64_t>(rest)) {
      event.step = *step;
    } else {
      return std::nullopt;
    }
    return event;
  }
  return std::nullopt;
}

void report_run_event(const RunEvent& event) {
  const char* text = std::getenv(kEventsVariable);
  const auto descriptor = whole_number<int>(text == nullptr ? "" : text);
  if (!descriptor) return;
  const std::string line = line_of(event) + "\n";
  // The guard reads the pipe and kills the run when it ends itself: no write meets a closed pipe.
  [[maybe_unused]] const ssize_t written = ::write(*descriptor, line.data(), line.size());
}

}  // namespace onebit
