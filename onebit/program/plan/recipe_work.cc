#include "onebit/program/plan/recipe_work.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

namespace onebit::plan {
namespace {

using costs::ByKind;
using costs::PassParts;

PassParts count(Context& context, const pretrain::PretrainingConfig& config, DType type,
                int64_t layers) {
  model::BertConfig model = config.model;
  model.layers = layers;
  const costs::PassShape shape{.model = model,
                               .heads = config.data.heads(),
                               .memory = config.memory,
                               .sequences = 1,
                               .length = config.data.pairs.sequence_length,
                               .masked = config.limits(1).labelled};
  return costs::observe_pass(context, shape, type, 0).work;
}

// The layer of a parameter's name, or nothing for heads and embeddings.
std::optional<int64_t> layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "bert.encoder.layer.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t layer = 0;
  if (std::from_chars(name.data(), name.data() + name.size(), layer).ec != std::errc()) {
    return std::nullopt;
  }
  return layer;
}

// Maps the offset at which each parameter begins in the flat buffer to the time when its gradient
// is ready. Every element belongs to the parameter before it, so that the ranges cover the buffer.
template <typename Place>
std::map<int64_t, double> ready_from(const ParameterTable& table, const Place& seconds_of) {
  std::map<int64_t, double> from;
  for (const ParameterEntry& entry : table.entries()) {
    from[entry.offset_elements] = seconds_of(entry.name);
  }
  return from;
}

}  // namespace

RecipeWork count_work(Context& context, const pretrain::PretrainingConfig& config, DType type) {
  const PassParts one = count(context, config, type, 1), two = count(context, config, type, 2);
  const auto further = static_cast<double>(config.model.layers - 1);
  const double computed = config.drop().mean_layers(0, config.engine.run.steps) - 1;
  const double share = further > 0 ? computed / further : 1;
  return {.one_layer = one,
          .layer_forward = share * (two.forward - one.forward),
          .layer_backward = share * (two.encoder - one.encoder)};
}

costs::PassTimes pass_times(const RecipeWork& work, const costs::ComputingCosts& machine,
                            const ParameterTable& table, int64_t sequences, int host_parts) {
  const double share = static_cast<double>(sequences * host_parts);
  const auto seconds = [share](const ByKind& done, const ByKind& rates) {
    return share * (done / rates).sum();
  };
  int64_t layers = 1;
  for (const ParameterEntry& entry : table.entries()) {
    layers = std::max(layers, layer_of(entry.name).value_or(0) + 1);
  }
  const auto more = static_cast<double>(layers - 1);
  const double heads = seconds(work.one_layer.heads, machine.backward);
  const double last_layer = seconds(work.one_layer.encoder, machine.backward);
  const double layer = seconds(work.layer_backward, machine.backward);
  const double embeddings = seconds(work.one_layer.embeddings, machine.backward);
  costs::PassTimes pass{.forward_seconds = seconds(work.one_layer.forward, machine.forward) +
                                           more * seconds(work.layer_forward, machine.forward),
                        .backward_seconds = heads + last_layer + more * layer + embeddings,
                        .ready = {}};
  const auto ready_at = [&](std::string_view name) {
    if (name.starts_with("bert.embeddings.")) return pass.backward_seconds;
    const auto index = layer_of(name);
    if (!index) return heads;
    return heads + last_layer + static_cast<double>(layers - 1 - *index) * layer;
  };
  int64_t end = table.size_elements();
  const std::map<int64_t, double> from = ready_from(table, ready_at);
  for (auto entry = from.rbegin(); entry != from.rend(); ++entry) {
    pass.ready.push_back({{entry->first, end}, entry->second});
    end = entry->first;
  }
  return pass;
}

}  // namespace onebit::plan
