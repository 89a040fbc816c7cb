// The training engine over a model of another library, whose parameters and gradients are views of
// the engine's two flat buffers.
#include "onebit/exchange/engine/engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/device/device_stream.h"
#include "onebit/math/device/libraries.h"
#include "python/src/interruption.h"
#include "python/src/memory_state.h"
#include "python/src/module.h"

namespace onebit::python {
namespace {

using namespace nb::literals;

using Bounds = std::pair<int64_t, int64_t>;
// (name, shape, group, ranges of elements that stay as they are in the compressed phase)
using ParameterTuple = std::tuple<std::string, std::vector<int64_t>, int, std::vector<Bounds>>;
// (factor of the learning rate, weight decay)
using GroupTuple = std::pair<double, double>;
using FlatArray = nb::ndarray<float, nb::ndim<1>>;

// As the engine stores it: [n] or [rows, columns].
Shape stored_shape(const std::string& name, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    require(size >= 0, "parameter `{}` has a negative dimension", name);
    require(!__builtin_mul_overflow(elements, size, &elements),
            "parameter `{}` has more elements than a memory can hold", name);
  }
  require(elements > 0, "parameter `{}` has no elements; leave it out", name);
  if (shape.size() < 2) return {elements};
  return {shape[0], elements / shape[0]};
}

void add_parameter(ParameterTable& table, const ParameterTuple& parameter) {
  const auto& [name, shape, group, held] = parameter;
  require(group >= 0, "parameter `{}` is of group {}", name, group);
  ParameterDeclaration declaration{.name = name,
                                   .shape = stored_shape(name, shape),
                                   .decay = true,  // each group has a weight decay of its own
                                   .group = group,
                                   .lookup = shape.size() > 1};
  const int64_t elements = declaration.shape.elements();
  for (const auto& [begin, end] : held) {
    require(0 <= begin && begin < end && end <= elements,
            "[{}, {}) of parameter `{}` is no range of its {} elements", begin, end, name,
            elements);
    declaration.held.push_back({begin, end});
  }
  table.add(std::move(declaration));
}

constexpr const char* kArguments = "the optimizer's arguments";

// `place` is where the recipe is, for errors.
engine::EngineConfig config_of(const std::string& recipe, const std::string& place = kArguments) {
  const Json document = parse_json(recipe, place);
  Keys keys(document, place);
  engine::EngineConfig config = engine::parse_engine_config(keys);
  keys.check();
  return config;
}

// Collective. Errors: the ranks are on devices of different kinds.
std::shared_ptr<comm::Communicator> communicator_on(Device device, const Ranks& ranks) {
  comm::Communicator& host = *ranks.communicator;
  if (host.world_size() == 1) return ranks.communicator;
  const std::vector<std::string> uuids = transport::device_uuids_of_ranks(host, device);
  if (std::ranges::all_of(uuids, &std::string::empty)) return ranks.communicator;
  const transport::DeviceTransport transport =
      transport::transport_of({.host = std::string(host.transport()), .device_uuids = uuids});
  return transport::make_device_communicator(host.duplicate(), device, transport);
}

class ModuleEngine {
 public:
  // `cuda_index` is the CUDA device of all parameters. Without it they are on the CPU. Collective.
  ModuleEngine(const std::vector<ParameterTuple>& parameters, const std::string& recipe,
               const Ranks& ranks, int threads, std::optional<int> cuda_index)
      : communicator_(ranks.communicator),
        context_(cuda_index ? Context::cuda(*cuda_index, threads) : Context::cpu(threads)),
        config_(config_of(recipe)) {
    require(!parameters.empty(), "there are no parameters to train");
    for (const ParameterTuple& parameter : parameters) add_parameter(table_, parameter);
    table_.allocate(context_.device(), config_.compute);
    table_.stale_gradients().leave_to_caller();
    const nb::gil_scoped_release release;
    communicator_ = communicator_on(context_.device(), ranks);
    engine_ = std::make_unique<engine::Engine>(context_, table_, config_, *communicator_);
  }

  // An array of its own for one parameter, so that what it is saved as is not the whole buffer.
  FlatArray values(nb::handle owner, int64_t parameter) const {
    const auto [begin, end] = range(parameter);
    return flat(table_.values().rows(begin, end), owner);
  }
  FlatArray gradients(nb::handle owner) const { return flat(table_.gradients(), owner); }
  std::pair<int64_t, int64_t> range(int64_t parameter) const {
    const auto count = static_cast<int64_t>(table_.parameters().size());
    require(parameter >= 0 && parameter < count, "there is no parameter {} of {}", parameter,
            count);
    const Range range = table_.parameters()[static_cast<size_t>(parameter)].range;
    return {range.begin, range.end};
  }
  int64_t size() const { return table_.size_elements(); }
  int64_t completed_steps() const { return engine_->completed_steps(); }
  std::string transport() const { return std::string(communicator_->transport()); }

  // The order of the engine's work and of what the caller has submitted to its own CUDA stream, by
  // the address of its cudaStream_t.
  void wait_for_stream(uintptr_t stream) const { device().wait_for_stream(address(stream)); }
  void make_stream_wait(uintptr_t stream) const { device().make_stream_wait(address(stream)); }
  void synchronize() const { context_.synchronize(); }

  // In every step or in none, from the first on.
  void set_groups(const std::vector<GroupTuple>& settings) {
    std::vector<optim::UpdateGroup> groups;
    for (const auto& [rate, weight_decay] : settings) {
      groups.push_back({.rate = rate, .weight_decay = weight_decay});
    }
    engine_->set_groups(std::move(groups));
  }

  void broadcast_values() { engine_->broadcast_values(); }
  bool replicas_agree() {
    bool agree = false;
    engine_->with_common_values([&] { agree = engine_->replicas_agree(); });
    return agree;
  }

  // Returns the loss scale, and whether gradients are to be announced.
  std::pair<double, bool> begin_backward() {
    require(!input_, "the backward pass before has not been ended by step()");
    input_ = engine_->begin_backward();
    return {input_->loss_scale, static_cast<bool>(input_->gradients_ready)};
  }
  void gradients_ready(int64_t begin, int64_t end) {
    require(input_ && input_->gradients_ready, "no gradients are awaited");
    require(begin >= 0 && begin <= end && end <= size(), "[{}, {}) is no range of {} elements",
            begin, end, size());
    input_->gradients_ready({begin, end});
  }
  void end_backward() {
    require(input_.has_value(), "no backward pass has begun");
    const engine::BackwardInput input = *std::exchange(input_, std::nullopt);
    engine_->end_backward(input);
  }
  nb::dict step(double learning_rate) {
    std::optional<engine::StepOutcome> outcome;
    wait_for_ranks(communicator_, [&] { outcome = engine_->step(learning_rate); });
    require(outcome.has_value(), "step() was called without a backward pass");
    return described(*outcome);
  }

  // The state of this rank, with the values that all ranks have in common if they are wanted.
  nb::dict state(bool with_values) {
    nb::dict state;
    MemoryState writer(state);
    wait_for_ranks(communicator_, [&] {
      engine_->with_common_values([&] {
        engine_->save(writer);
        if (with_values) writer.replicated("values", table_.values());
      });
    });
    return state;
  }
  // `states` by rank (memory_state.h).
  void load_state(const nb::dict& states, int saved_world_size) {
    require(!input_, "a state was loaded during a backward pass");
    const StateInMemory reader(states, saved_world_size);
    wait_for_ranks(communicator_, [&] {
      if (reader.has_replicated("values")) reader.replicated("values", table_.values());
      engine_->load(reader);
    });
  }

 private:
  DeviceStream& device() const {
    require(!context_.device().is_cpu(), "the parameters are on the CPU, which has no streams");
    return context_.cuda();
  }

  static void* address(uintptr_t stream) {
    return reinterpret_cast<void*>(stream);  // NOLINT(performance-no-int-to-ptr)
  }

  static FlatArray flat(View view, nb::handle owner) {
    const Device device = view.device();
    return {view.data<float>(),
            {static_cast<size_t>(view.elements())},
            owner,
            {},
            nb::dtype<float>(),
            device.is_cpu() ? nb::device::cpu::value : ONEBIT_CUDA_ARRAYS::value,
            device.index};
  }

  static nb::dict described(const engine::StepOutcome& outcome) {
    nb::dict result;
    result["step"] = outcome.step;
    result["applied"] = outcome.applied;
    result["phase"] = std::string(optim::name_of(outcome.phase));
    result["froze_now"] = outcome.froze_now;
    result["learning_rate"] = outcome.learning_rate;
    result["gradient_norm"] = outcome.gradient_norm;
    result["clip_coefficient"] = outcome.clip_coefficient;
    result["skipped_steps"] = outcome.skipped_steps;
    result["wire_bytes"] = outcome.wire_bytes;
    result["wire_bytes_dense16"] = outcome.wire_bytes_dense16;
    result["compress_seconds"] = outcome.compress_seconds;
    result["wait_seconds"] = outcome.wait_seconds;
    result["update_seconds"] = outcome.update_seconds;
    return result;
  }

  std::shared_ptr<comm::Communicator> communicator_;
  Context context_;
  engine::EngineConfig config_;
  ParameterTable table_;
  std::unique_ptr<engine::Engine> engine_;
  std::optional<engine::BackwardInput> input_;
};

// The learning rates of a recipe.
class RecipeSchedule {
 public:
  explicit RecipeSchedule(const std::string& recipe) {
    const Json document = parse_json(recipe, "the config");
    Keys keys(document, "the config");
    const engine::EngineConfig config = engine::parse_engine_config(keys);
    keys.check();
    std::vector<std::string> warnings;
    schedule_ = config.scheduler.make(config.run.steps, warnings);
  }
  double rate(int64_t update) const {
    require(update >= 1, "updates are counted from 1, not {}", update);
    return schedule_->at(update).learning_rate;
  }

 private:
  std::unique_ptr<optim::Schedule> schedule_;
};

}  // namespace

void bind_engine(nb::module_& module) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<ModuleEngine>(module, "Engine")
      .def(nb::init<const std::vector<ParameterTuple>&, const std::string&, const Ranks&, int,
                    std::optional<int>>(),
           "parameters"_a, "recipe"_a, "ranks"_a, "threads"_a, "cuda_index"_a.none())
      .def(
          "values",
          [](nb::handle self, int64_t parameter) {
            return nb::cast<ModuleEngine&>(self).values(self, parameter);
          },
          "parameter"_a, nb::rv_policy::reference)
      .def(
          "gradients",
          [](nb::handle self) { return nb::cast<ModuleEngine&>(self).gradients(self); },
          nb::rv_policy::reference)
      .def("range", &ModuleEngine::range, "parameter"_a)
      .def_prop_ro("size", &ModuleEngine::size)
      .def_prop_ro("completed_steps", &ModuleEngine::completed_steps)
      .def_prop_ro("transport", &ModuleEngine::transport)
      .def("wait_for_stream", &ModuleEngine::wait_for_stream, "stream"_a)
      .def("make_stream_wait", &ModuleEngine::make_stream_wait, "stream"_a)
      .def("synchronize", &ModuleEngine::synchronize, Unlocked())
      .def("broadcast_values", &ModuleEngine::broadcast_values, Unlocked())
      .def("replicas_agree", &ModuleEngine::replicas_agree, Unlocked())
      .def("begin_backward", &ModuleEngine::begin_backward, Unlocked())
      .def("gradients_ready", &ModuleEngine::gradients_ready, "begin"_a, "end"_a, Unlocked())
      .def("end_backward", &ModuleEngine::end_backward, Unlocked())
      .def("set_groups", &ModuleEngine::set_groups, "groups"_a)
      .def("step", &ModuleEngine::step, "learning_rate"_a)
      .def("state", &ModuleEngine::state, "with_values"_a)
      .def("load_state", &ModuleEngine::load_state, "states"_a, "saved_world_size"_a);
  nb::class_<RecipeSchedule>(module, "Schedule")
      .def(nb::init<const std::string&>(), "recipe"_a)
      .def("rate", &RecipeSchedule::rate, "update"_a);
  module.def("has_cuda", [] { return cuda_version() != 0; });
  // Error: what the engine's constructor would refuse in the recipe.
  module.def(
      "check_recipe",
      [](const std::string& recipe, const std::string& place) { config_of(recipe, place); },
      "recipe"_a, "place"_a = kArguments);
}

}  // namespace onebit::python
