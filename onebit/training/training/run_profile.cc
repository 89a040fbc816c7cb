#include "onebit/training/training/run_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/partial_file.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/math/ops/linear.h"
#include "onebit/training/costs/machine_costs.h"

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

namespace {

// Rows below this share of a step are merged into one.
constexpr double kSmallestShare = 0.001;
constexpr const char* kNoOperation = "(outside operations)";

std::string name_of(const ProfileSum& sum) {
  if (sum.place.operation == nullptr) return "";
  std::string name = sum.place.operation;
  if (sum.work.in > 0) name += fmt::format(" {} -> {}", sum.work.in, sum.work.out);
  if (sum.work.use != nullptr) name += fmt::format(", {}", sum.work.use);
  return name;
}

std::string phase_of(const ProfileSum& sum) {
  return sum.place.phase == nullptr ? "" : sum.place.phase;
}

bool lies_in_a_step(const ProfileSum& sum) {
  return sum.place.outermost != nullptr && std::string_view(sum.place.outermost) == kStepPhase;
}

std::string count(double calls) {
  return calls >= 10 || calls == std::floor(calls) ? fmt::format("{:.0f}", calls)
                                                   : fmt::format("{:.1f}", calls);
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.{}f}", 1e3 * seconds, seconds < 0.1 ? 2 : 1);
}

const ProfileTrack* main_track(const Profile& profile) {
  for (const ProfileTrack* track : profile.tracks()) {
    if (track->name() == kMainTrack) return track;
  }
  return nullptr;
}

// Averages per step over those sums of a track that are `wanted`: one row per operation and phase,
// whatever encloses the phase. In descending order of time.
template <typename Wanted>
std::vector<ProfileRow> rows_of(const ProfileTrack& track, int64_t step_count,
                                const Wanted& wanted) {
  const auto steps = static_cast<double>(step_count);
  std::vector<ProfileRow> rows;
  for (const ProfileSum& sum : track.sums()) {
    if (!wanted(sum)) continue;
    const std::string operation = name_of(sum), phase = phase_of(sum);
    auto row = std::find_if(rows.begin(), rows.end(), [&](const ProfileRow& one) {
      return one.operation == operation && one.phase == phase;
    });
    if (row == rows.end()) {
      row = rows.insert(rows.end(), {.operation = operation, .phase = phase});
    }
    row->calls += static_cast<double>(sum.calls) / steps;
    row->seconds += sum.seconds / steps;
    row->flops += sum.work.flops / steps;
    row->bytes += sum.work.bytes / steps;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

}  // namespace

ProfileTable::ProfileTable(const Profile& profile, const Context& context,
                           const ProfileCeilings& ceilings)
    : ceilings_(ceilings), steps_(profile.steps()) {
  require(steps_ > 0, "no step was profiled");
  step_seconds_ = profile.step_seconds() / static_cast<double>(steps_);
  count_steps(profile);
  title_ = title(profile, context);
  for (Section section : {operations(), phases(), beside(profile), outside(profile)}) {
    if (section.lines.size() > 1) sections_.push_back(std::move(section));
  }
}

void ProfileTable::count_steps(const Profile& profile) {
  const ProfileTrack* const track = main_track(profile);
  ONEBIT_INVARIANT(track != nullptr);
  rows_ = rows_of(*track, profile.steps(), lies_in_a_step);
}

std::string ProfileTable::title(const Profile& profile, const Context& context) const {
  std::string text = fmt::format("{} steps of {} ms", steps_, milliseconds(step_seconds_));
  if (profile.seconds() > 0) {
    text += fmt::format(", {:.1f} % of {:.1f} s", 100 * profile.step_seconds() / profile.seconds(),
                        profile.seconds());
  }
  if (ceilings_.flops > 0) {
    text += fmt::format(
        ". Ceilings, measured after the run with {} threads: {:.1f} GFLOP/s of a matrix product in "
        "{}, {:.1f} GB/s of a copy",
        context.threads(), ceilings_.flops * 1e-9, onebit::name_of(ceilings_.product_type),
        ceilings_.bytes * 1e-9);
  } else {
    text +=
        ". Times are those of the host: operations are launched in them and run on the device "
        "until a row that waits for it";
  }
  return text + ".";
}

std::string ProfileTable::rate_of(const ProfileRow& row) const {
  if (ceilings_.flops == 0 || row.seconds <= 0) return "";
  if (row.flops > 0) return fmt::format("{:.1f} GFLOP/s", row.flops / row.seconds * 1e-9);
  if (row.bytes > 0) return fmt::format("{:.1f} GB/s", row.bytes / row.seconds * 1e-9);
  return "";
}

std::string ProfileTable::share_of_ceiling(const ProfileRow& row) const {
  if (ceilings_.flops == 0 || row.seconds <= 0) return "";
  if (row.flops > 0) {
    return fmt::format("{:.0f} %", 100 * row.flops / row.seconds / ceilings_.flops);
  }
  if (row.bytes > 0) {
    return fmt::format("{:.0f} %", 100 * row.bytes / row.seconds / ceilings_.bytes);
  }
  return "";
}

std::vector<std::string> ProfileTable::line_of(const ProfileRow& row) const {
  return {row.operation,
          row.phase,
          row.calls > 0 ? count(row.calls) : "",
          milliseconds(row.seconds),
          fmt::format("{:.2f} %", 100 * row.seconds / step_seconds_),
          rate_of(row),
          share_of_ceiling(row)};
}

ProfileTable::Section ProfileTable::operations() const {
  Section section{
      .title = "Operations of a step",
      .lines = {{"operation", "phase", "calls", "ms", "of the step", "rate", "of the ceiling"}},
      .words = 2};
  ProfileRow small, counted{.operation = "all operations"}, rest{.operation = kNoOperation};
  int64_t small_rows = 0;
  for (const ProfileRow& row : rows_) {
    ProfileRow& sum = row.operation.empty() ? rest : counted;
    sum.seconds += row.seconds;
    if (row.operation.empty()) continue;
    counted.calls += row.calls;
    if (row.seconds >= kSmallestShare * step_seconds_) {
      section.lines.push_back(line_of(row));
      continue;
    }
    ++small_rows;
    small.calls += row.calls;
    small.seconds += row.seconds;
  }
  small.operation = fmt::format("{} smaller ones", small_rows);
  if (small_rows > 0) section.lines.push_back(line_of(small));
  section.lines.push_back(line_of(counted));
  section.lines.push_back(line_of(rest));
  section.lines.push_back(
      line_of({.operation = "sum", .phase = "", .seconds = counted.seconds + rest.seconds}));
  section.lines.push_back(line_of({.operation = "step", .phase = "", .seconds = step_seconds_}));
  return section;
}

ProfileTable::Section ProfileTable::phases() const {
  struct Sum {
    double seconds = 0, in_no_operation = 0, flops = 0;
  };
  std::map<std::string, Sum> sums;
  for (const ProfileRow& row : rows_) {
    Sum& sum = sums[row.phase];
    sum.seconds += row.seconds;
    sum.flops += row.flops;
    if (row.operation.empty()) sum.in_no_operation += row.seconds;
  }
  std::vector<std::pair<std::string, Sum>> ordered(sums.begin(), sums.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  Section section{.title = "Phases of a step",
                  .lines = {{"phase", "ms", "of the step", kNoOperation, "rate", "of the ceiling"}},
                  .words = 1};
  for (const auto& [phase, sum] : ordered) {
    const ProfileRow row{
        .operation = "", .phase = phase, .seconds = sum.seconds, .flops = sum.flops};
    section.lines.push_back({phase, milliseconds(sum.seconds),
                             fmt::format("{:.2f} %", 100 * sum.seconds / step_seconds_),
                             milliseconds(sum.in_no_operation), rate_of(row),
                             share_of_ceiling(row)});
  }
  return section;
}

// These rows show no share of the ceilings, which apply to the computing threads only.
ProfileTable::Section ProfileTable::beside(const Profile& profile) const {
  Section section{.title = "Other threads, per step",
                  .lines = {{"thread", "operation", "phase", "calls", "ms", "rate"}},
                  .words = 3};
  for (const ProfileTrack* track : profile.tracks()) {
    if (track->name() == kMainTrack) continue;
    for (const ProfileRow& row :
         rows_of(*track, profile.steps(), [](const ProfileSum&) { return true; })) {
      section.lines.push_back({track->name(), row.operation, row.phase, count(row.calls),
                               milliseconds(row.seconds), rate_of(row)});
    }
  }
  return section;
}

ProfileTable::Section ProfileTable::outside(const Profile& profile) const {
  std::map<std::string, ProfileRow> sums;
  for (const ProfileSum& sum : main_track(profile)->sums()) {
    if (lies_in_a_step(sum) || sum.place.outermost == nullptr) continue;
    ProfileRow& row = sums[sum.place.outermost];
    row.seconds += sum.seconds;
    const bool is_outermost = std::string_view(sum.place.phase) == sum.place.outermost;
    if (sum.place.operation == nullptr && is_outermost) {
      row.calls += static_cast<double>(sum.calls);
    }
  }
  Section section{
      .title = "Between the steps, in total", .lines = {{"phase", "calls", "s"}}, .words = 1};
  for (const auto& [phase, row] : sums) {
    section.lines.push_back({phase, count(row.calls), fmt::format("{:.3f}", row.seconds)});
  }
  return section;
}

std::string ProfileTable::text() const {
  std::string text = "\nprofile: " + title_ + "\n";
  for (const Section& section : sections_) {
    metrics::TextTable table(section.lines.front());
    std::vector<size_t> numbers;
    for (size_t i = section.words; i < section.lines.front().size(); ++i) numbers.push_back(i);
    table.align_right(numbers);
    for (size_t i = 1; i < section.lines.size(); ++i) table.add_row(section.lines[i]);
    text += "\n" + section.title + "\n" + table.text(2);
  }
  return text;
}

std::string ProfileTable::markdown() const {
  std::string text = "# Profile\n\n" + title_ + "\n";
  for (const Section& section : sections_) {
    text += "\n## " + section.title + "\n\n";
    for (size_t i = 0; i < section.lines.size(); ++i) {
      text += fmt::format("| {} |\n", fmt::join(section.lines[i], " | "));
      if (i > 0) continue;
      text += "|";
      for (size_t column = 0; column < section.lines[i].size(); ++column) {
        text += column < section.words ? "---|" : "--:|";
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace onebit::training
