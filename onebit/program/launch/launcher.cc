#include "onebit/program/launch/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/launch/attempt.h"
#include "onebit/program/launch/batch_fit.h"
#include "onebit/program/launch/known_checkpoint.h"
#include "onebit/program/launch/launch_checks.h"
#include "onebit/program/launch/rank_guard.h"
#include "onebit/program/launch/restart_policy.h"
#include "onebit/program/launch/start_command.h"

namespace onebit::launch {
namespace {

constexpr double kMinLease = 30;
constexpr double kLongestLook = 30;  // between two checks of the hosts
// The resources and batch of one attempt.
struct Choice {
  cluster::Hosts hosts;
  int threads = 0;
  bool bind = false;
  engine::BatchSizes batch;
  bool changed = false;  // the number of ranks is not the planned one
};

class Launcher {
 public:
  Launcher(const LaunchOptions& options, const TrainingCommand& training)
      : options_(options),
        training_(training),
        output_(Path(options.folder) / training.output),
        policy_(options.max_restarts, options.pause_seconds),
        run_id_(fmt::format("{:08x}", static_cast<uint32_t>(random_id()))),
        checkpoint_(output_, training.resume),
        checks_(options, training, [this] { return requests_.any(); }) {}

  // Checks the hosts and makes the choice for the first attempt. Error: a check failed.
  Choice first_choice() {
    command({.hosts = options_.hosts}, "");  // refuses what the starter cannot be told
    std::vector<cluster::CheckedHost> checked;
    if (options_.checks) checked = ask();
    const cluster::Problems wrong = checks_.problems(checked, checkpoint_);
    if (requests_.any()) return {};
    cluster::require_none(wrong, "these hosts cannot start the run, and nothing was started:");
    checks_.hold_to(checked);
    Choice choice = choose(options_.hosts, checked);
    for (const cluster::Problem& note : checks_.compare(checked, choice.threads).notes) {
      log_warning("{}: {}", note.place, note.what);
    }
    return choice;
  }

  int run() {
    Choice choice = first_choice();
    if (requests_.any()) return asked_to_end(-1);
    for (;;) {
      const AttemptOutcome outcome = attempt(choice);
      if (outcome.end == AttemptEnd::kDone) return done(choice);
      if (outcome.end == AttemptEnd::kStopped)
        return asked_to_end(outcome.last_step, outcome.cause);
      const std::optional<double> pause = after(outcome, choice);
      if (!pause) return kGaveUp;
      if (requests_.wait(*pause)) return asked_to_end(outcome.last_step);
      const std::optional<Choice> next = next_choice();
      if (!next) return requests_.any() ? asked_to_end(outcome.last_step) : kGaveUp;
      choice = *next;
    }
  }

  // Shows what run() would start.
  int show() {
    const Choice choice = first_choice();
    if (requests_.any()) {
      log_info("asked to end");
      return kAskedToEnd;
    }
    fmt::print("{}", explained(command(choice, "ID")));
    return kFinished;
  }

 private:
  static std::string scratch(const std::string& id) { return "/dev/shm/onebit-" + id; }

  StartCommand command(const Choice& choice, const std::string& id) const {
    return start_command(options_.starter.starter, {.hosts = choice.hosts,
                                                    .agent = options_.agent,
                                                    .program = options_.starter.program,
                                                    .open_mpi = options_.starter.version.major,
                                                    .threads = choice.threads,
                                                    .bind = choice.bind,
                                                    .interface = options_.interface,
                                                    .exports = exports(choice.hosts),
                                                    .folder = options_.folder,
                                                    .launch_id = id,
                                                    .scratch = scratch(id),
                                                    .as_root = options_.as_root,
                                                    .in_slurm = options_.in_slurm,
                                                    .command = cluster::rank_words(
                                                        options_.program, training_words(choice))});
  }

  std::vector<cluster::CheckedHost> ask() {
    std::vector<cluster::CheckedHost> checked = checks_.ask();
    checkpoint_.add(checked);
    return checked;
  }

  bool slots_are_chosen(const cluster::Hosts& hosts) const {
    return std::any_of(hosts.begin(), hosts.end(),
                       [](const cluster::Host& host) { return host.is_restricted(); });
  }

  std::vector<std::string> exports(const cluster::Hosts& hosts) const {
    std::vector<std::string> names = options_.exports;
    if (slots_are_chosen(hosts)) names.emplace_back(kSlotsVariable);
    return names;
  }

  // Chooses threads and binding from the cores of the hosts.
  Choice choose(const cluster::Hosts& hosts,
                const std::vector<cluster::CheckedHost>& checked) const {
    Choice choice = {.hosts = hosts, .threads = options_.threads, .batch = training_.batch};
    int threads = 0;
    bool known = !checked.empty(), fits = known;
    for (const cluster::CheckedHost& host : checked) {
      const auto own = std::find_if(hosts.begin(), hosts.end(), [&](const cluster::Host& one) {
        return one.name == host.name;
      });
      if (own == hosts.end()) continue;
      const int cores = cluster::usable_cores(host);
      const int share = cores / std::max(1, own->ranks());
      known = known && cores > 0;
      threads = threads == 0 ? std::max(1, share) : std::min(threads, std::max(1, share));
      fits = fits && share >= std::max(1, options_.threads);
    }
    if (choice.threads == 0 && known && !training_.sets_threads) choice.threads = threads;
    using Bind = LaunchOptions::Bind;
    choice.bind = choice.threads > 0 &&
                  (options_.bind == Bind::kCore || (options_.bind == Bind::kAuto && fits && known));
    return choice;
  }

  // An attempt that has begun to train has checked that its folder holds no other run, or has gone
  // back to the checkpoint of --resume TAG, so the following attempts continue from the newest one.
  // Before that --resume stays as given. Otherwise a run that exists on a host's disk would be
  // continued without a request.
  cluster::Words training_words(const Choice& choice) const {
    cluster::Words words = training_.words;
    if (choice.threads > 0 && !training_.sets_threads) {
      words.insert(words.end(), {"--threads", fmt::format("{}", choice.threads)});
    }
    if (choice.changed) {
      const cluster::Words overrides = overrides_of(choice.batch);
      words.insert(words.end(), overrides.begin(), overrides.end());
    }
    if (checkpoint_.has_begun()) {
      words.emplace_back("--resume");
    } else {
      words.insert(words.end(), training_.resume.begin(), training_.resume.end());
    }
    return words;
  }

  std::vector<std::string> variables(const Choice& choice, const std::string& id) const {
    std::vector<std::string> all = options_.variables;
    all.push_back(fmt::format("{}={}", kLaunchVariable, id));
    if (slots_are_chosen(choice.hosts)) {
      std::vector<int> slots;
      for (const cluster::Host& host : choice.hosts) {
        slots.insert(slots.end(), host.slots.begin(), host.slots.end());
      }
      all.push_back(fmt::format("{}={}", kSlotsVariable, fmt::join(slots, ",")));
    }
    return all;
  }

  AttemptOutcome attempt(const Choice& choice) {
    const Path logs = output_ / run_files::kLogs;
    const auto [number, folder] = take_attempt(logs);
    const std::string id = fmt::format("{}-{}", run_id_, number);
    AttemptLog log(folder, hosts_of_ranks(choice.hosts));
    const cluster::Words start = words_of(command(choice, id));
    log.note(fmt::format("launch {}", id));
    log.note(cluster::shell_line(start));
    log_info("attempt {}: {} on {}; their output is in {}", number,
             counted(cluster::count_ranks(choice.hosts), "rank"),
             listed(cluster::names_of(choice.hosts)), log.folder().string());
    const double lease = std::max(kMinLease, 3 * options_.host_seconds);
    AttemptOutcome outcome = run_attempt(
        {.hosts = choice.hosts,
         .agent = options_.agent,
         .start = start,
         .variables = variables(choice, id),
         .watch = cluster::watch_words(
             options_.program, {.launch_id = id, .folder = scratch(id), .lease_seconds = lease}),
         .folder = options_.folder,
         .limits = options_.limits,
         .host_seconds = options_.host_seconds,
         .end_seconds = options_.end_seconds},
        log, requests_);
    if (outcome.saved_step >= 0) checkpoint_.add_reported(outcome.saved_step);
    if (outcome.end == AttemptEnd::kFailed) {
      const std::string line = fmt::format(
          "attempt {} failed{}: {}{} (ended everywhere in {:.1f} s)", number,
          outcome.step < 0 ? "" : fmt::format(" at step {}", outcome.step), outcome.cause.text,
          outcome.last_step == outcome.step
              ? ""
              : fmt::format("; it reached step {} before it was ended", outcome.last_step),
          outcome.ending_seconds);
      log.note(line);
      if (outcome.ended_ranks > 0) {
        log.note(fmt::format("{} had to be killed after {} had ended",
                             counted(outcome.ended_ranks, "rank"), start[0]));
      }
      log_error("{}", line);
    }
    return outcome;
  }

  int done(const Choice& choice) const {
    if (!checkpoint_.is_here()) {
      log_info("{} is on the disks of {}: this machine has only the logs", training_.output,
               listed(cluster::names_of(choice.hosts)));
    }
    return kFinished;
  }

  int asked_to_end(int64_t step, const Cause& cause = {}) const {
    if (!cause.text.empty()) {
      log_error("no final checkpoint was saved: {}", cause.text);
    }
    log_info(
        "the run was asked to end and ended{}; start the same command with --resume to continue "
        "from {}",
        step < 0 ? "" : fmt::format(" after step {}", step), checkpoint_.words());
    return kAskedToEnd;
  }

  // The pause before the next attempt. Empty if there is no next attempt.
  std::optional<double> after(const AttemptOutcome& outcome, const Choice& choice) {
    if (outcome.cause.is_usage) return std::nullopt;
    const RestartDecision decision = policy_.after({.kind = outcome.cause.kind,
                                                    .cause = outcome.cause.text,
                                                    .step = outcome.step,
                                                    .checkpoint = checkpoint_.tag(),
                                                    .begun = checkpoint_.has_begun()});
    if (!decision.restart) {
      log_error("the run is not started again: {}", decision.reason);
      return std::nullopt;
    }
    // The attempt may lack parts of checkpoints that are on the hosts that were left out.
    needs_all_ = choice.hosts.size() < options_.hosts.size() && outcome.saved_step < 0 &&
                 outcome.cause.kind == FaultKind::kReported;
    if (needs_all_) {
      log_info("the run cannot start on the remaining hosts and waits for the others");
    } else {
      log_info("the run starts again from {} after a pause of {}", checkpoint_.words(),
               metrics::human_duration(decision.pause_seconds));
    }
    return decision.pause_seconds;
  }

  // The choice for another attempt, from the hosts that answer and pass the checks. Waits for
  // enough of them. Empty if they do not come.
  std::optional<Choice> next_choice() {
    const bool may_be_fewer = options_.min_hosts > 0 && !needs_all_;
    const int wanted = may_be_fewer ? options_.min_hosts : static_cast<int>(options_.hosts.size());
    double pause = options_.pause_seconds;
    for (const Stopwatch waited;;) {
      const auto checked = ask();
      if (requests_.any()) return std::nullopt;
      const cluster::CheckFindings found = checks_.compare(checked);
      cluster::Hosts left = options_.hosts;
      for (const cluster::Problem& note : found.notes) log_warning("{}: {}", note.place, note.what);
      for (const cluster::Problem& problem : found.wrong) {
        log_warning("{} is excluded: {}", problem.place, problem.what);
        std::erase_if(left, [&](const cluster::Host& host) { return host.name == problem.place; });
      }
      if (options_.checks && static_cast<int>(left.size()) >= wanted)
        checks_.leave_out_unreached(left);
      if (requests_.any()) return std::nullopt;
      if (static_cast<int>(left.size()) >= wanted) return fitted(choose(left, checked));
      const double left_seconds = options_.wait_seconds - waited.seconds();
      if (left_seconds <= 0) {
        const char* advice = needs_all_ ? ": without the others the run cannot start"
                             : may_be_fewer || left.empty()
                                 ? ""
                                 : ": give --min-hosts to continue with fewer";
        log_error("{} of {} hosts can be used, {} are needed (see the lines above){}", left.size(),
                  options_.hosts.size(), wanted, advice);
        return std::nullopt;
      }
      log_info("{} of {} hosts can be used, {} are needed: checking again in {}", left.size(),
               options_.hosts.size(), wanted, metrics::human_duration(pause));
      if (requests_.wait(std::min(pause, left_seconds))) return std::nullopt;
      pause = std::min(2 * pause, kLongestLook);
    }
  }

  // Fits the same batch to the ranks that are available.
  Choice fitted(Choice choice) const {
    const int planned = cluster::count_ranks(options_.hosts),
              there = cluster::count_ranks(choice.hosts);
    if (there == planned) return choice;
    const BatchFit fit = fit_batch(training_.batch, there);
    const engine::BatchSizes& sizes = fit.sizes;
    if (training_.checkpoint_copies > 1) {
      keep_ranks_and_copies(choice.hosts, fit.ranks, options_.hosts);
    } else {
      keep_ranks(choice.hosts, fit.ranks);
    }
    choice.batch = sizes;
    choice.changed = true;
    const bool equal = sizes.are_equal(fit.ranks);
    log_info("the run continues on {} of {} ranks: the batch size stays {}, as {}{}{}", fit.ranks,
             planned, sizes.train, engine::describe_shares(sizes, fit.ranks),
             equal ? "" : " (the batch does not divide evenly among the ranks: run.uneven_batches)",
             fit.ranks == there
                 ? ""
                 : fmt::format("; {} are available, but some would have no sample", there));
    return choice;
  }

  const LaunchOptions& options_;
  const TrainingCommand& training_;
  Path output_;
  RestartPolicy policy_;
  std::string run_id_;
  KnownCheckpoint checkpoint_;
  bool needs_all_ = false;  // the next attempt needs all hosts, regardless of --min-hosts
  LaunchChecks checks_;
  EndRequests requests_;
};

}  // namespace

int show_launch(const LaunchOptions& options, const TrainingCommand& training) {
  cluster::raise_open_files_for(static_cast<int64_t>(options.hosts.size()));
  return Launcher(options, training).show();
}

int launch(const LaunchOptions& options, const TrainingCommand& training) {
  cluster::raise_open_files_for(static_cast<int64_t>(options.hosts.size()));
  return Launcher(options, training).run();
}

}  // namespace onebit::launch
