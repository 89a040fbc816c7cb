#include "onebit/training/training/run_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/partial_file.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/math/ops/linear.h"
#include "onebit/training/costs/machine_costs.h"
#include "onebit/training/training/profile_table.h"

namespace onebit::training {

namespace {

constexpr int64_t kTracedSteps = 5;
constexpr double kCeilingSeconds = 1;

// The host's clock measures only the launches of a GPU's operations, so these have no rate.
ProfileCeilings measure_ceilings(Context& context, DType compute) {
  if (!context.device().is_cpu()) return {};
  const bool native = compute == DType::kBF16 && ops::bf16_is_native(context);
  const DType type = native ? DType::kBF16 : DType::kF32;
  return {.flops = costs::measure_product(context, type, kCeilingSeconds),
          .bytes = costs::measure_memory(context, kCeilingSeconds),
          .product_type = type};
}

}  // namespace

RunProfile::RunProfile(Context& context, const ProfileRequest& request, DType compute)
    : context_(context), request_(request), compute_(compute) {
  context_.set_profile_track(&profile_.track(kMainTrack));
}

RunProfile::~RunProfile() {
  context_.set_profile_track(nullptr);
}

void RunProfile::start(int64_t completed_steps, int64_t last_step) {
  const int64_t first = completed_steps + 1;
  const int64_t traced =
      request_.first_traced_step > 0 ? request_.first_traced_step : std::min(first + 2, last_step);
  traces_a_step_ = traced <= last_step;
  profile_.start({.first_counted_step = std::min(first + 1, last_step),
                  .first_traced_step = traced,
                  .traced_steps = kTracedSteps});
}

std::string RunProfile::write(const Path& output, comm::Communicator& communicator) {
  const int rank = communicator.rank();
  const Path folder = output / run_files::kProfile;
  if (rank == 0) make_folder(folder);
  communicator.barrier();  // the folder is there, and all ranks of a machine measure together
  const ProfileCeilings ceilings = measure_ceilings(context_, compute_);
  write_trace(folder / trace_name(rank), profile_, rank);
  if (rank != 0) return {};
  const ProfileTable table(profile_, context_, ceilings);
  write_file_atomically(folder / "table.md", table.markdown());
  return table.text() + "\n" + (folder / "table.md").string() + " and " +
         (folder / trace_name(rank)).string() +
         (traces_a_step_ ? " (ui.perfetto.dev)\n"
                         : fmt::format(", which contains no step: the run ended before step {}\n",
                                       request_.first_traced_step));
}

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
