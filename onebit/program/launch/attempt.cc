#include "onebit/program/launch/attempt.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <set>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/launch/host_link.h"

namespace onebit::launch {
namespace {

constexpr int kTickMilliseconds = 200;
constexpr double kReadySeconds = 30;   // for a host's watch to start
constexpr double kHostSeconds = 0.05;  // more for each host: agents start one after the other
constexpr double kFallSeconds = 4;     // for a starter to end by itself after a rank has failed
constexpr double kLookSeconds = 3;     // for hosts to show the states of ranks that hang
constexpr double kTermSeconds = 3;     // between SIGTERM and SIGKILL
constexpr double kSweepSeconds = 60;   // for hosts that show that they are ending their processes

class Attempt {
 public:
  Attempt(const AttemptRequest& request, AttemptLog& log, EndRequests& requests)
      : request_(request),
        log_(log),
        requests_(requests),
        requests_before_(requests.count()),
        faults_(log),
        progress_(request.limits, 0) {}

  AttemptOutcome run() {
    start_links();
    if (wait_for_hosts()) {
      start();
      supervise();
    }
    end_everything();
    return outcome();
  }

 private:
  double now() const { return clock_.seconds(); }

  void start_links() {
    std::vector<std::string> names = cluster::names_of(request_.hosts);
    const bool has_here = std::ranges::any_of(names, [this](const std::string& name) {
      return cluster::runs_here(request_.agent, name);
    });
    // The starter always runs on this machine.
    if (!has_here) names.emplace_back(cluster::kThisMachine);
    double heard = now();
    for (const std::string& name : names) {
      links_.push_back(
          std::make_unique<HostLink>(request_.agent, name, request_.watch, request_.folder, now()));
      // A busy machine needs a minute for a thousand agents, and the first watches would take a
      // launcher that says nothing for gone.
      if (now() - heard < kBeatSeconds) continue;
      heard = now();
      tick(0);
      if (requested()) return;
    }
  }

  // Waits until all hosts are ready. Otherwise records the fault and returns false.
  bool wait_for_hosts() {
    const double limit = kReadySeconds + kHostSeconds * static_cast<double>(links_.size());
    for (;;) {
      tick();
      if (requested()) return false;
      if (std::all_of(links_.begin(), links_.end(), [](auto& link) { return link->ready(); })) {
        progress_ = HangWatch(request_.limits, now());
        return true;
      }
      for (const auto& link : links_) {
        if (link->ready()) continue;
        if (link->is_lost() || link->silent_seconds() > limit) {
          fault(fmt::format("{} does not answer{}{}", link->host(),
                            link->complaint().empty() ? "" : ": ", link->complaint()));
          return false;
        }
      }
    }
  }

  void start() {
    try {
      starter_ = std::make_unique<cluster::Subprocess>(request_.start, request_.variables);
    } catch (const Error&) {
      end_everything();
      throw;
    }
    starter_->close_input();
  }

  // Runs until the starter has ended or must be ended.
  void supervise() {
    while (!starter_ended()) {
      tick();
      if (requested() > 1) return;
      if (requested() > 0 && !asked_at_) ask_to_end();
      if (asked_at_ && now() - *asked_at_ > request_.end_seconds) {
        log_warning("no checkpoint within {:g} s of the request to end", request_.end_seconds);
        return;
      }
      if (lost_host()) return;
      if (const auto complaint = progress_.complaint(now()); complaint && !failing_since_) {
        failing_since_ = now();
        explain_hang(*complaint);
        return;
      }
      if (faults_.any() && !failing_since_) failing_since_ = now();
      if (failing_since_ && now() - *failing_since_ > kFallSeconds) return;
    }
    // A lost host shows first as a broken connection of the starter.
    if (ended_well() || asked_at_) return;
    if (!failing_since_) failing_since_ = now();
    if (faults_.any()) return;
    for (const double until = now() + kLookSeconds; now() < until && !lost_host();) tick();
  }

  int requested() { return requests_.count() - requests_before_; }

  void ask_to_end() {
    asked_at_ = now();
    log_info(
        "the launcher was asked to end: the run {}",
        progress_.has_begun() ? "saves a checkpoint first" : "has not started training and ends");
    starter_->signal(SIGUSR1);  // every starter forwards it to its ranks
  }

  bool lost_host() {
    for (const auto& link : links_) {
      const double silent = link->silent_seconds();
      if (!link->is_lost() && silent <= request_.host_seconds) continue;
      fault(link->is_lost()
                ? fmt::format("the connection to {} is lost", link->host())
                : fmt::format("{} has not answered for {:.0f} s", link->host(), silent));
      return true;
    }
    return false;
  }

  // Asks all hosts for the states of their ranks, before they are ended.
  void explain_hang(const std::string& complaint) {
    for (const auto& link : links_) link->look();
    const double until = now() + kLookSeconds;
    const auto all_looked = [&] {
      return std::all_of(links_.begin(), links_.end(), [](auto& link) { return link->looked(); });
    };
    while (now() < until && !all_looked()) tick();
    std::set<std::string> reasons;  // a set: hosts that are namespaces see each other's processes
    for (const auto& link : links_) {
      if (!link->looked()) reasons.insert(fmt::format("{} does not answer", link->host()));
      for (const auto& [rank, state] : link->states()) {
        if (state == 'T') reasons.insert(fmt::format("{} is stopped", log_.name_of(rank)));
        if (state == 'D') {
          reasons.insert(fmt::format("{} waits for a disk or file system", log_.name_of(rank)));
        }
      }
    }
    const std::vector<std::string> shown(reasons.begin(), reasons.end());
    fault(shown.empty() ? complaint : fmt::format("{}: {}", complaint, listed(shown)));
  }

  void fault(const std::string& text) {
    if (!failing_since_) failing_since_ = now();
    // Ranks that were only slow may continue until they are ended.
    if (!failed_step_) failed_step_ = progress_.step();
    faults_.found(text);
  }

  // Waits for input, at most some milliseconds, and processes it.
  void tick(int milliseconds = kTickMilliseconds) {
    std::vector<pollfd> sources;
    const auto add = [&](int descriptor) { sources.push_back({descriptor, POLLIN, 0}); };
    if (!requested()) add(requests_.descriptor());
    if (starter_ && output_open_) add(starter_->output());
    if (starter_ && error_open_) add(starter_->error());
    size_t at = sources.size();
    std::vector<size_t> ends;  // of the sources of each link
    for (const auto& link : links_) {
      link->add_sources(sources);
      ends.push_back(sources.size());
    }
    ::poll(sources.data(), static_cast<nfds_t>(sources.size()), milliseconds);
    // Only hosts that have sent something are read: every host sends a beat each second, and a
    // thousand hosts would otherwise be read a thousand times a second each.
    for (size_t i = 0; i < links_.size(); ++i) {
      bool has_arrived = false;
      for (; at < ends[i]; ++at) has_arrived = has_arrived || sources[at].revents != 0;
      links_[i]->advance(now(), has_arrived);
    }
    if (starter_) read_starter();
  }

  void read_starter() {
    read_lines(starter_->output(), output_open_, output_reader_);
    read_lines(starter_->error(), error_open_, error_reader_);
  }

  void read_lines(int stream, bool& open, RankLineReader& reader) {
    if (!open) return;
    std::string bytes;
    open = cluster::read_available(stream, bytes);
    take(reader.add(bytes));
    if (!open) take(reader.finish());
  }

  void take(const RankLineReader::Lines& lines) {
    for (const RankLine& line : lines.of_ranks) {
      if (line.kind == LineKind::kEvent) {
        take_event(line);
      } else if (line.kind == LineKind::kEnd) {
        log_.note(fmt::format("{}: {}", log_.name_of(line.rank), line.text));
      } else {
        log_.add(line);
      }
      faults_.add(line);
    }
    for (const std::string& line : lines.unmarked) {
      log_.note(line);
      faults_.add_unmarked(line);
    }
  }

  void take_event(const RankLine& line) {
    const std::optional<RunEvent> event = parse_run_event(line.text);
    if (!event) return note_unknown(line);
    progress_.event(*event, now());
    faults_.add(line.rank, *event);
  }

  // The event itself has no effect, but a program that sends unknown events is another version of
  // onebit than the launcher.
  void note_unknown(const RankLine& line) {
    const std::string text = fmt::format(
        "{} reports \"{}\", which is unknown to this launcher: install the same onebit "
        "on all hosts",
        log_.name_of(line.rank), line.text);
    log_.note(text);
    if (!warned_of_unknown_) log_warning("{}", text);
    warned_of_unknown_ = true;
  }

  bool starter_ended() {
    if (!ended_ && starter_) ended_ = starter_->poll();
    if (ended_) read_starter();
    return ended_.has_value();
  }

  // The status of the starter alone does not say so: Open MPI 5.0 ends with 0 after the loss of a
  // host. A run reports its end itself.
  bool ended_well() {
    return ended_ && ended_->well() &&
           (progress_.finished() || progress_.stopped() || requested() > 0);
  }

  void end_starter() {
    if (!starter_ || starter_ended()) return;
    starter_->signal(SIGTERM);
    for (const double until = now() + kTermSeconds; now() < until && !starter_ended();) tick();
    if (!starter_ended()) starter_->signal_group(SIGKILL);
  }

  void end_everything() {
    const bool well = ended_well();
    if (!well) faults_.ending();
    if (!well && !requested()) log_.leave_terminal();  // hide what ranks print when they are ended
    end_starter();
    // The watches end ranks that a starter cannot: those that are stopped or whose daemon is gone.
    for (const auto& link : links_) link->end();
    const double until = now() + kSweepSeconds;
    const auto all_ended = [&] {
      return std::all_of(links_.begin(), links_.end(), [&](auto& link) {
        return link->ended() || link->silent_seconds() > request_.host_seconds;
      });
    };
    while (now() < until && !all_ended()) tick();
    starter_ended();
    for (const auto& link : links_) {
      ended_ranks_.insert(link->ended_ranks().begin(), link->ended_ranks().end());
    }
  }

  // Whether a request to end was not followed by the checkpoint that a run then makes.
  bool misses_checkpoint(bool stopped) {
    return requested() > 0 && !stopped && progress_.has_begun() && faults_.any();
  }

  AttemptOutcome outcome() {
    AttemptOutcome outcome = {.step = failed_step_.value_or(progress_.step()),
                              .last_step = progress_.step(),
                              .saved_step = progress_.saved_step(),
                              .ended_ranks = static_cast<int>(ended_ranks_.size())};
    if (failing_since_) outcome.ending_seconds = now() - *failing_since_;
    const bool well = ended_well() && !faults_.any();
    // Ranks that the launcher ends after a fault may still take it for a request to stop.
    const bool stopped = well && progress_.stopped();
    if (well && !stopped && (progress_.finished() || !requested())) {
      outcome.end = AttemptEnd::kDone;
    } else if (stopped || requested()) {
      outcome.end = AttemptEnd::kStopped;
    }
    if (outcome.end == AttemptEnd::kFailed || misses_checkpoint(stopped)) {
      outcome.cause = faults_.cause(ended_ ? fmt::format("{} {}", request_.start[0], ended_->text())
                                           : request_.start[0]);
    }
    return outcome;
  }

  const AttemptRequest& request_;
  AttemptLog& log_;
  EndRequests& requests_;
  int requests_before_;
  Stopwatch clock_;
  std::vector<std::unique_ptr<HostLink>> links_;
  std::unique_ptr<cluster::Subprocess> starter_;
  std::optional<cluster::Ended> ended_;
  RankLineReader output_reader_, error_reader_;
  bool output_open_ = true, error_open_ = true;
  FaultNotes faults_;
  HangWatch progress_;
  std::optional<double> failing_since_, asked_at_;
  std::optional<int64_t> failed_step_;
  std::set<int> ended_ranks_;  // a set: hosts that are namespaces end each other's ranks
  bool warned_of_unknown_ = false;
};

}  // namespace

AttemptOutcome run_attempt(const AttemptRequest& request, AttemptLog& log, EndRequests& requests) {
  return Attempt(request, log, requests).run();
}

}  // namespace onebit::launch
