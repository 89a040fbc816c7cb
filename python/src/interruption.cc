#include "python/src/interruption.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace onebit::python {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 1000ms, kLook = 20ms;

// Of the process, as its signals are.
struct Watched {
  std::mutex mutex;
  std::shared_ptr<comm::Communicator> communicator;  // null: nothing is watched
  std::atomic<int64_t> number{0};                    // of the call that is watched
  struct sigaction before = {};
  sem_t interrupted = {};
  pid_t started_in = 0;  // the process whose thread waits for the semaphore
};

Watched& watched() {
  static auto* all = new Watched;  // its thread outlives the end of main()
  return *all;
}

extern "C" void note_interrupt(int number) {
  sem_post(&watched().interrupted);
  watched().before.sa_handler(number);
}

void end_call_after_grace() {
  Watched& all = watched();
  const int64_t number = all.number;
  for (auto waited = 0ms; waited < kGrace && all.number == number; waited += kLook) {
    std::this_thread::sleep_for(kLook);
  }
  std::shared_ptr<comm::Communicator> communicator;
  {
    const std::scoped_lock lock(all.mutex);
    if (all.number == number) communicator = all.communicator;
  }
  if (!communicator) return;
  try {
    communicator->abort("interrupted by its user");
  } catch (const Error&) {
    // It throws here, too.
  }
}

// A child of fork() has no such thread yet.
void start_thread() {
  Watched& all = watched();
  if (all.started_in == getpid()) return;
  all.started_in = getpid();
  sem_init(&all.interrupted, 0, 0);
  std::thread([&all] {
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, nullptr);
    while (true) {
      if (sem_wait(&all.interrupted) == 0) end_call_after_grace();
    }
  }).detach();
}

bool is_main_thread_with_default_handler() {
  const nb::module_ threading = nb::module_::import_("threading");
  if (!threading.attr("current_thread")().is(threading.attr("main_thread")())) return false;
  const nb::module_ signals = nb::module_::import_("signal");
  return signals.attr("getsignal")(SIGINT).is(signals.attr("default_int_handler"));
}

}  // namespace

void check_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

InterruptionWatch::InterruptionWatch(std::shared_ptr<comm::Communicator> communicator) {
  if (communicator->world_size() == 1 || !is_main_thread_with_default_handler()) return;
  Watched& all = watched();
  if (sigaction(SIGINT, nullptr, &all.before) != 0) return;
  const bool is_function = (all.before.sa_flags & SA_SIGINFO) == 0 &&
                           all.before.sa_handler != SIG_DFL && all.before.sa_handler != SIG_IGN;
  if (!is_function) return;
  start_thread();
  {
    const std::scoped_lock lock(all.mutex);
    all.communicator = std::move(communicator);
    ++all.number;
  }
  struct sigaction during = all.before;
  during.sa_handler = note_interrupt;
  watches_ = sigaction(SIGINT, &during, nullptr) == 0;
}

InterruptionWatch::~InterruptionWatch() {
  if (!watches_) return;
  Watched& all = watched();
  sigaction(SIGINT, &all.before, nullptr);
  const std::scoped_lock lock(all.mutex);
  all.communicator.reset();
  ++all.number;
}

}  // namespace onebit::python
