#include "onebit/training/training/run_profile.h"

#include <algorithm>

#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/math/ops/linear.h"
#include "onebit/training/costs/machine_speed.h"
#include "onebit/training/training/profile_table.h"
#include "onebit/training/training/profile_trace.h"

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

}  // namespace onebit::training
