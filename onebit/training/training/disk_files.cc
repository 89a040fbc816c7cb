#include "onebit/training/training/disk_files.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "onebit/data/formats/sentence_files.h"
#include "onebit/exchange/checkpoint/file_exchange.h"
#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/partial_file.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/metrics/log_line.h"

namespace onebit::training {
namespace {

namespace files = std::filesystem;

constexpr const char* kWhat = "the files of the run were not copied to this disk";

// The files of the run on one disk.
struct DiskFiles {
  int64_t metrics_bytes = -1;  // -1: none
  int64_t steps = 0;           // updates in it, up to the one that the run continues from
  std::vector<std::string> events;
  std::string evaluation;          // the text of evaluation.json. Empty: no kept model
  std::vector<std::string> model;  // files, relative to the folder of the run
};

std::vector<std::string> names_in(const Path& folder) {
  std::vector<std::string> names;
  std::error_code is_not_there;
  for (const auto& file : files::directory_iterator(folder, is_not_there)) {
    if (file.is_regular_file()) names.push_back(file.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

DiskFiles read_disk_files(const Path& output, int64_t step) {
  DiskFiles found;
  const Path metrics = output / run_files::kMetrics, evaluation = output / run_files::kEvaluation;
  if (files::exists(metrics)) found.metrics_bytes = static_cast<int64_t>(files::file_size(metrics));
  found.steps = metrics::count_steps(metrics, step);
  found.events = names_in(output / run_files::kTensorBoard);
  if (!files::exists(evaluation)) return found;
  found.evaluation = read_regular_file(evaluation, kMaxJsonBytes);
  for (const auto& file : files::directory_iterator(output)) {
    const std::string name = file.path().filename().string();
    const bool is_kept = name == run_files::kScores || !run_files::is_of_run(name);
    // The names are compared between disks as JSON. A model's are UTF-8.
    if (file.is_regular_file() && is_kept && is_utf8(name) && name != run_files::kReport &&
        !name.ends_with(kPartialSuffix) && !name.starts_with(run_files::kDiskToken)) {
      found.model.push_back(name);
    }
  }
  // Those of a trained model, which has no other modules.
  for (const Path& folder : formats::module_folders(formats::SentenceFiles{})) {
    for (const std::string& name : names_in(output / folder)) {
      found.model.push_back((folder / name).string());
    }
  }
  std::sort(found.model.begin(), found.model.end());
  return found;
}

std::vector<DiskFiles> gather(comm::Communicator& communicator, const checkpoint::Disks& disks,
                              const Path& output, int64_t step) {
  std::string mine;
  if (disks.leads(communicator.rank())) {
    const DiskFiles own = read_disk_files(output, step);
    mine = json_text(
        Json::array({own.metrics_bytes, own.steps, own.events, own.evaluation, own.model}));
  }
  const std::vector<std::string> texts = comm::gather_texts(communicator, mine);
  std::vector<DiskFiles> all;
  for (int disk = 0; disk < disks.count(); ++disk) {
    const Json theirs = Json::parse(texts[static_cast<size_t>(disks.leader_of(disk))]);
    all.push_back({.metrics_bytes = theirs[0].get<int64_t>(),
                   .steps = theirs[1].get<int64_t>(),
                   .events = theirs[2].get<std::vector<std::string>>(),
                   .evaluation = theirs[3].get<std::string>(),
                   .model = theirs[4].get<std::vector<std::string>>()});
  }
  return all;
}

// The disk whose kept model is copied to all others. Empty: no disk has one.
std::optional<size_t> preferred(const std::vector<DiskFiles>& all,
                                const IsPreferred& is_preferred) {
  std::optional<size_t> best;
  for (size_t disk = 0; disk < all.size(); ++disk) {
    if (all[disk].evaluation.empty()) continue;
    if (!best || is_preferred(parse_json(all[disk].evaluation, run_files::kEvaluation),
                              parse_json(all[*best].evaluation, run_files::kEvaluation))) {
      best = disk;
    }
  }
  return best;
}

}  // namespace

void share_run_files(comm::Communicator& communicator, const checkpoint::Disks& disks,
                     const Path& output, int64_t step, const IsPreferred& is_preferred) {
  if (disks.count() == 1) return;
  const std::vector<DiskFiles> all = gather(communicator, disks, output, step);
  const Path incoming = output / run_files::kIncoming;
  std::vector<checkpoint::FileTransfer> transfers;
  const auto bring = [&](size_t from, size_t to, const std::string& name) {
    transfers.push_back({.from = disks.leader_of(static_cast<int>(from)),
                         .to = disks.leader_of(static_cast<int>(to)),
                         .source = output / name,
                         .target = incoming / name});
  };
  // A host that was absent lacks the files that the others have written in the meantime.
  const auto fullest = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.steps, a.metrics_bytes) < std::tie(b.steps, b.metrics_bytes);
  });
  const std::optional<size_t> best = preferred(all, is_preferred);
  for (size_t disk = 0; disk < all.size(); ++disk) {
    if (all[disk].steps < fullest->steps ||
        (all[disk].metrics_bytes < 0 && fullest->metrics_bytes >= 0)) {
      const auto from = static_cast<size_t>(fullest - all.begin());
      bring(from, disk, run_files::kMetrics);
      for (const std::string& name : fullest->events) {
        bring(from, disk, (Path(run_files::kTensorBoard) / name).string());
      }
    }
    if (!best || all[disk].evaluation == all[*best].evaluation) continue;
    for (const std::string& name : all[*best].model) bring(*best, disk, name);
    bring(*best, disk, run_files::kEvaluation);
  }
  if (transfers.empty()) return;
  const int rank = communicator.rank();
  const bool takes = std::any_of(transfers.begin(), transfers.end(),
                                 [&](const auto& transfer) { return transfer.to == rank; });
  std::optional<FolderLock> lock;
  comm::run_on_all(communicator, kWhat, [&] {
    if (!takes) return;
    make_folder(output);
    lock.emplace(output);
    files::remove_all(incoming);
    make_folder(incoming / run_files::kTensorBoard);
  });
  comm::run_on_all(communicator, kWhat,
                   [&] { checkpoint::exchange_files(communicator, transfers); });
  comm::run_on_all(communicator, kWhat, [&] {
    if (!takes) return;
    // The evaluation is moved last, since its presence means that the model is complete.
    for (const checkpoint::FileTransfer& transfer : transfers) {
      const Path name = transfer.target.lexically_relative(incoming);
      if (transfer.to != rank || *name.begin() == run_files::kTensorBoard) continue;
      make_folder((output / name).parent_path());
      rename_durably(transfer.target, output / name);
    }
    // The events are replaced as a whole: the present ones cover fewer of the same steps.
    if (!files::is_empty(incoming / run_files::kTensorBoard)) {
      replace_folder(incoming / run_files::kTensorBoard, output / run_files::kTensorBoard);
    }
    files::remove_all(incoming);
  });
}

}  // namespace onebit::training
