// Training from a recipe, as the program's training commands do it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/transport/world.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/log_line.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/training/training_loop.h"
#include "python/src/interruption.h"
#include "python/src/module.h"
#include "python/src/recipes.h"

namespace onebit::python {
namespace {

using namespace nb::literals;

// Python's side of a run: its callbacks, its signals and the last lines of the log.
class Host {
 public:
  Host(nb::object on_line, nb::object should_stop)
      : on_line_(std::move(on_line)), should_stop_(std::move(should_stop)) {}

  training::RunHost functions() {
    return {.on_line = [this](const Json& line) { take(line); },
            .should_stop = [this] { return is_asked_to_stop(); },
            .handles_signals = false};
  }
  // Raises the exception of a signal's handler that has ended the run, with the lock held.
  void raise_of_signal() {
    if (!of_signal_) return;
    of_signal_->restore();
    of_signal_.reset();
    nb::raise_python_error();
  }
  const Json& last(metrics::log_line::Kind kind) const {
    return kind == metrics::log_line::Kind::kStep ? step_ : evaluation_;
  }

 private:
  void take(const Json& line) {
    const bool is_step = metrics::log_line::kind_of(line) == metrics::log_line::Kind::kStep;
    (is_step ? step_ : evaluation_) = line;
    if (on_line_.is_none()) return;
    const std::string text = json_text(line);
    const nb::gil_scoped_acquire gil;
    call([&] {
      on_line_(text);
      return false;
    });
  }

  bool is_asked_to_stop() {
    const nb::gil_scoped_acquire gil;
    if (of_signal_) return true;
    if (PyErr_CheckSignals() != 0) {
      of_signal_.emplace();
      return true;
    }
    return call([&] {
      if (should_stop_.is_none()) return false;
      const int answer = PyObject_IsTrue(should_stop_().ptr());
      if (answer < 0) nb::raise_python_error();
      return answer != 0;
    });
  }

  // Python's handler of Ctrl-C raises KeyboardInterrupt, in a callback if it is running. It is kept
  // until the run has saved a checkpoint. Other exceptions end the run at once.
  template <typename Callback>
  bool call(const Callback& callback) {
    try {
      return callback();
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_KeyboardInterrupt)) throw;
      of_signal_.emplace(std::move(error));
      return true;
    }
  }

  nb::object on_line_, should_stop_;
  std::optional<nb::python_error> of_signal_;
  Json step_, evaluation_;
};

struct TrainingArguments {
  GivenRecipe recipe;
  training::TaskInputs inputs;
  training::RunOptions run;
  commands::DeviceOptions device;
};

Json result_of(const TrainingArguments& given, const training::RunSummary& summary,
               const Host& host) {
  using metrics::log_line::Kind;
  const auto model = training::model_folder_in(given.run.output);
  return {{"steps", summary.steps},
          {"samples", summary.samples},
          {"finished", summary.finished},
          {"metrics", host.last(Kind::kStep)},
          {"evaluation", host.last(Kind::kEvaluation)},
          {"best", summary.best ? training::to_json(*summary.best) : Json()},
          {"model", model ? Json(model->string()) : Json()}};
}

// MPI cannot be started again after its end.
void require_one_run_under_mpi() {
  static bool has_run = false;
  const transport::Launch launch = transport::detect_launch();
  if (launch.world_size <= 1 || transport::host_transport(launch) != "mpi") return;
  require(!std::exchange(has_run, true),
          "this process has trained over MPI already, and MPI can be used once per process: start "
          "another process, or use TCP (torchrun, or ONEBIT_TRANSPORT=tcp)");
}

std::string train_on_this_rank(TrainingArguments& given, Host& host) {
  const nb::gil_scoped_release release;
  require_one_run_under_mpi();
  given.run.host = host.functions();
  training::RunSummary summary;
  commands::run_on_ranks(
      given.device, [&] { given.run.recipe = given.recipe.load(); },
      [&](Context& context, const training::Connection& connection) {
        summary = training::make_and_train(context, inspect::make_task, given.run, given.inputs,
                                           connection);
      },
      &check_signals);
  return json_text(result_of(given, summary, host));
}

// Returns the result as JSON.
std::string train(const GivenRecipe& recipe, const std::string& model,
                  const std::vector<std::pair<std::string, double>>& data,
                  const std::vector<std::pair<std::string, std::string>>& valid,
                  const std::string& output, const std::optional<std::string>& resume, bool quiet,
                  const std::string& device, int threads, nb::object on_line,
                  nb::object should_stop) {
  require(!output.empty(), "output is empty: give the folder of the run");
  require(threads >= 0 && threads <= commands::kMaxThreads,
          "threads must be between 0 (all) and {}, not {}", commands::kMaxThreads, threads);
  require(device == "auto" || device == "cpu" || device == "cuda",
          "device is \"auto\", \"cpu\" or \"cuda\", not \"{}\"", device);
  TrainingArguments given = {.recipe = recipe,
                             .inputs = {.model = model, .train = {}, .dev = {}},
                             .run = {.recipe = {},
                                     .output = output,
                                     .resume = resume.has_value(),
                                     .tag = resume.value_or(""),
                                     .quiet = quiet},
                             .device = {.device = device, .threads = threads}};
  for (const auto& [path, weight] : data) given.inputs.train.emplace_back(path, weight);
  for (const auto& [name, path] : valid) given.inputs.dev.push_back({name, path});
  Host host(std::move(on_line), std::move(should_stop));
  std::string result = train_on_this_rank(given, host);
  host.raise_of_signal();
  return result;
}

}  // namespace

void bind_training(nb::module_& module) {
  module.def("train", &train, "recipe"_a, "model"_a, "data"_a, "valid"_a, "output"_a,
             "resume"_a.none(), "quiet"_a, "device"_a, "threads"_a, "on_line"_a.none(),
             "should_stop"_a.none());
}

}  // namespace onebit::python
