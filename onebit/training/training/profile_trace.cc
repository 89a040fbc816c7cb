#include "onebit/training/training/profile_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "onebit/ground/base/partial_file.h"

namespace onebit::training {
namespace {

// Names are literals of the program, without characters that JSON escapes.
std::string metadata(const char* kind, int rank, size_t thread, const std::string& name) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", kind,
                     rank, thread, name);
}

std::string arguments(const ProfileEvent& event) {
  std::string text;
  const auto add = [&](const std::string& member) { text += (text.empty() ? "" : ",") + member; };
  if (event.bucket >= 0) add(fmt::format(R"("bucket":{})", event.bucket));
  if (event.work.use != nullptr) add(fmt::format(R"("use":"{}")", event.work.use));
  if (event.work.in > 0) add(fmt::format(R"("in":{},"out":{})", event.work.in, event.work.out));
  const double ns = std::max(1.0, static_cast<double>(event.end_ns - event.begin_ns));
  if (event.work.flops > 0) add(fmt::format(R"("GFLOP/s":{:.1f})", event.work.flops / ns));
  if (event.work.bytes > 0) add(fmt::format(R"("GB/s":{:.1f})", event.work.bytes / ns));
  return text;
}

std::string line_of(const ProfileEvent& event, int rank, size_t thread) {
  const bool is_operation = event.place.operation != nullptr;
  const char* const name = is_operation ? event.place.operation : event.place.phase;
  const char* const around = event.place.phase == nullptr ? "" : event.place.phase;
  return fmt::format(
      R"({{"name":"{}","cat":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
      name, is_operation ? around : "phase", rank, thread,
      static_cast<double>(event.begin_ns) * 1e-3,
      static_cast<double>(event.end_ns - event.begin_ns) * 1e-3, arguments(event));
}

}  // namespace

std::string trace_name(int rank) {
  return rank == 0 ? "trace.json" : fmt::format("trace_rank{}.json", rank);
}

void write_trace(const Path& path, const Profile& profile, int rank) {
  PartialFile file(path);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  file.write(metadata("process_name", rank, 0, fmt::format("rank {}", rank)));
  int64_t dropped = 0;
  const std::vector<const ProfileTrack*> tracks = profile.tracks();
  for (size_t thread = 0; thread < tracks.size(); ++thread) {
    file.write(",\n" + metadata("thread_name", rank, thread, tracks[thread]->name()));
    for (const ProfileEvent& event : tracks[thread]->events()) {
      file.write(",\n" + line_of(event, rank, thread));
    }
    dropped += tracks[thread]->dropped_events();
  }
  file.write(fmt::format("\n],\"otherData\":{{\"dropped events\":\"{}\"}}}}\n", dropped));
  file.finish();
}

}  // namespace onebit::training
