// The training engine over a model of another library, whose parameters and gradients are views of
// the engine's two flat buffers.
#include "onebit/exchange/engine/engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>
#include <tuple>

#include "onebit/ground/base/json.h"
#include "python/src/module.h"

namespace onebit::python {
namespace {

using namespace nb::literals;

// (name, shape, whether weight decay applies, whether rows may stay without a gradient)
using ParameterTuple = std::tuple<std::string, std::vector<int64_t>, bool, bool>;
using FlatArray = nb::ndarray<nb::numpy, float, nb::ndim<1>>;
using ReadOnlyArray = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// As the engine stores it: [n] or [rows, columns].
Shape stored_shape(const std::string& name, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    require(size >= 0, "parameter `{}` has a negative dimension", name);
    elements *= size;
  }
  require(elements > 0, "parameter `{}` has no elements; leave it out", name);
  if (shape.size() < 2) return {elements};
  return {shape[0], elements / shape[0]};
}

void add_parameter(ParameterTable& table, const ParameterTuple& parameter) {
  const auto& [name, shape, decays, is_lookup] = parameter;
  table.add({.name = name,
             .shape = stored_shape(name, shape),
             .decay = decays,
             .lookup = is_lookup && shape.size() > 1});
}

engine::EngineConfig config_of(const std::string& recipe) {
  const Json document = parse_json(recipe, "the optimizer's arguments");
  Keys keys(document, "the optimizer's arguments");
  engine::EngineConfig config = engine::parse_engine_config(keys);
  keys.check();
  return config;
}

// State in memory: scalars as JSON, buffers as arrays.
class MemoryState final : public StateWriter {
 public:
  explicit MemoryState(nb::dict& to) : to_(to) {}
  void scalar(const std::string& name, Json value) override {
    const nb::gil_scoped_acquire gil;
    to_[("scalar/" + name).c_str()] = nb::str(value.dump().c_str());
  }
  void replicated(const std::string& name, ConstView flat) override { keep("all/" + name, flat); }
  void own(const std::string& name, ConstView flat) override { keep("own/" + name, flat); }

 private:
  void keep(const std::string& name, ConstView flat) {
    const nb::gil_scoped_acquire gil;
    auto copy = std::make_unique<std::vector<float>>(flat.data<float>(),
                                                     flat.data<float>() + flat.elements());
    float* data = copy->data();
    const size_t elements = copy->size();
    const nb::capsule owner(copy.release(), [](void* memory) noexcept {
      delete static_cast<std::vector<float>*>(memory);
    });
    to_[name.c_str()] = FlatArray(data, {elements}, owner);
  }
  nb::dict& to_;
};

// The state that MemoryState of the same rank has written.
class StateInMemory final : public StateReader {
 public:
  StateInMemory(const nb::dict& state, int rank, int saved_world_size)
      : rank_(rank), saved_world_size_(saved_world_size) {
    for (const auto& [key, value] : state) {
      const auto name = nb::cast<std::string>(key);
      if (name.starts_with("scalar/")) {
        scalars_[name.substr(7)] = parse_json(nb::cast<std::string>(value), "`" + name + "`");
      } else {
        buffers_[name] = nb::cast<ReadOnlyArray>(value, false);
      }
    }
  }
  Json scalar(const std::string& name) const override {
    const auto found = scalars_.find(name);
    return found == scalars_.end() ? Json() : found->second;
  }
  void replicated(const std::string& name, View flat) const override {
    copy(buffer("all/" + name), 0, {flat.data<float>(), static_cast<size_t>(flat.elements())});
  }
  int saved_world_size() const override { return saved_world_size_; }
  int64_t own_elements(const std::string& name, int rank) const override {
    return static_cast<int64_t>(own_buffer(name, rank).shape(0));
  }
  void own_of(const std::string& name, int rank, int64_t begin,
              std::span<float> to) const override {
    copy(own_buffer(name, rank), begin, to);
  }

 private:
  const ReadOnlyArray& buffer(const std::string& name) const {
    const auto found = buffers_.find(name);
    require(found != buffers_.end(), "the state has no `{}`: it is of another optimizer", name);
    return found->second;
  }
  const ReadOnlyArray& own_buffer(const std::string& name, int rank) const {
    require(rank == rank_, "the state is of rank {}, and `{}` of rank {} is needed", rank_, name,
            rank);
    return buffer("own/" + name);
  }
  static void copy(const ReadOnlyArray& from, int64_t begin, std::span<float> to) {
    const auto elements = static_cast<int64_t>(from.shape(0));
    const auto wanted = static_cast<int64_t>(to.size());
    require(begin + wanted <= elements,
            "the state has {} elements where {} are needed: it is of another model", elements,
            begin + wanted);
    std::memcpy(to.data(), from.data() + begin, to.size_bytes());
  }

  int rank_, saved_world_size_;
  std::map<std::string, Json> scalars_;
  std::map<std::string, ReadOnlyArray> buffers_;
};

class ModuleEngine {
 public:
  ModuleEngine(const std::vector<ParameterTuple>& parameters, const std::string& recipe,
               const Ranks& ranks, int threads)
      : communicator_(ranks.communicator),
        context_(Context::cpu(threads)),
        config_(config_of(recipe)) {
    require(!parameters.empty(), "there are no parameters to train");
    for (const ParameterTuple& parameter : parameters) add_parameter(table_, parameter);
    table_.allocate(context_.device(), config_.compute);
    table_.stale_gradients().leave_to_caller();
    const nb::gil_scoped_release release;
    engine_ = std::make_unique<engine::Engine>(context_, table_, config_, *communicator_);
  }

  FlatArray values(nb::handle owner) const { return flat(table_.values(), owner); }
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
  nb::dict step(std::optional<double> learning_rate) {
    std::optional<engine::StepOutcome> outcome;
    {
      const nb::gil_scoped_release release;
      outcome = engine_->step(learning_rate);
    }
    require(outcome.has_value(), "step() was called without a backward pass");
    return described(*outcome);
  }

  nb::dict state() {
    nb::dict state;
    MemoryState writer(state);
    {
      const nb::gil_scoped_release release;
      engine_->with_common_values([&] { engine_->save(writer); });
    }
    return state;
  }
  void load_state(const nb::dict& state, int saved_world_size) {
    require(saved_world_size == communicator_->world_size(),
            "the state is of {} ranks and cannot be loaded by {}", saved_world_size,
            communicator_->world_size());
    const StateInMemory reader(state, communicator_->rank(), saved_world_size);
    const nb::gil_scoped_release release;
    engine_->load(reader);
  }

 private:
  static FlatArray flat(View view, nb::handle owner) {
    return {view.data<float>(), {static_cast<size_t>(view.elements())}, owner};
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
      .def(nb::init<const std::vector<ParameterTuple>&, const std::string&, const Ranks&, int>(),
           "parameters"_a, "recipe"_a, "ranks"_a, "threads"_a)
      .def(
          "values", [](nb::handle self) { return nb::cast<ModuleEngine&>(self).values(self); },
          nb::rv_policy::reference)
      .def(
          "gradients",
          [](nb::handle self) { return nb::cast<ModuleEngine&>(self).gradients(self); },
          nb::rv_policy::reference)
      .def("range", &ModuleEngine::range, "parameter"_a)
      .def_prop_ro("size", &ModuleEngine::size)
      .def_prop_ro("completed_steps", &ModuleEngine::completed_steps)
      .def("broadcast_values", &ModuleEngine::broadcast_values, Unlocked())
      .def("replicas_agree", &ModuleEngine::replicas_agree, Unlocked())
      .def("begin_backward", &ModuleEngine::begin_backward, Unlocked())
      .def("gradients_ready", &ModuleEngine::gradients_ready, "begin"_a, "end"_a, Unlocked())
      .def("end_backward", &ModuleEngine::end_backward, Unlocked())
      .def("step", &ModuleEngine::step, "learning_rate"_a.none())
      .def("state", &ModuleEngine::state)
      .def("load_state", &ModuleEngine::load_state, "state"_a, "saved_world_size"_a);
  nb::class_<RecipeSchedule>(module, "Schedule")
      .def(nb::init<const std::string&>(), "recipe"_a)
      .def("rate", &RecipeSchedule::rate, "update"_a);
  // Error: what the engine's constructor would refuse in the recipe.
  module.def(
      "check_recipe", [](const std::string& recipe) { config_of(recipe); }, "recipe"_a);
}

}  // namespace onebit::python
