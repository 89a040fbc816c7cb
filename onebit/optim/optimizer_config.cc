#include "onebit/optim/optimizer_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

namespace onebit::optim {
namespace {

struct KnownType {
  const char* name;
  std::optional<OptimizerType> type;  // empty: known, not there yet
};

constexpr std::array<KnownType, 6> kTypes{{{"Adam", OptimizerType::kAdam},
                                           {"AdamW", OptimizerType::kAdam},
                                           {"OneBitAdam", OptimizerType::kOneBitAdam},
                                           {"Lamb", std::nullopt},
                                           {"OneBitLamb", std::nullopt},
                                           {"ZeroOneAdam", std::nullopt}}};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

OptimizerType read_type(JsonReader& reader) {
  const std::string given = reader.text("type", "");
  require(!given.empty(), "{} is missing; known optimizers: Adam, AdamW, OneBitAdam",
          reader.place("type"));
  std::vector<std::string> names;  // only what can be asked for is suggested
  for (const KnownType& known : kTypes) {
    if (known.type.has_value()) names.emplace_back(known.name);
    if (lower(given) != lower(known.name)) continue;
    require(known.type.has_value(),
            "{} is \"{}\", which onebit does not have yet; use OneBitAdam for compressed exchange, "
            "AdamW without",
            reader.place("type"), given);
    return *known.type;
  }
  const std::string near = nearest_word(given, names);
  fail("{} is \"{}\"; it must be one of {}{}", reader.place("type"), given, fmt::join(names, ", "),
       near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near));
}

void read_betas(JsonReader& params, OptimizerConfig& config) {
  const std::vector<double> betas = params.numbers("betas", {config.beta1, config.beta2});
  config.beta1 = betas[0];
  config.beta2 = betas[1];
  for (const double beta : {config.beta1, config.beta2}) {
    require(beta >= 0 && beta < 1, "{}: {} must be at least 0 and below 1", params.place("betas"),
            beta);
  }
}

void read_adam(JsonReader& params, OptimizerConfig& config) {
  config.learning_rate = params.number("lr", config.learning_rate);
  read_betas(params, config);
  config.epsilon = params.number("eps", config.epsilon);
  config.weight_decay = params.number("weight_decay", config.weight_decay);
  config.decoupled_decay = params.boolean("adam_w_mode", config.decoupled_decay);
  config.bias_correction = params.boolean("bias_correction", config.bias_correction);
  require(config.learning_rate >= 0 && std::isfinite(config.learning_rate),
          "{} is {}; a rate is not negative", params.place("lr"), config.learning_rate);
  require(config.epsilon >= 0, "{} is {}; it is not negative", params.place("eps"), config.epsilon);
  require(config.weight_decay >= 0, "{} is {}; it is not negative", params.place("weight_decay"),
          config.weight_decay);
  require(!params.boolean("amsgrad", false), "{}: AMSGrad is not supported; remove it",
          params.place("amsgrad"));
  require(params.number("max_grad_norm", 0) == 0,
          "{}: set the top-level key gradient_clipping instead, which clips on the norm that all "
          "ranks agree on",
          params.place("max_grad_norm"));
  params.accept("torch_adam");     // which kernel DeepSpeed takes
  params.accept("set_grad_none");  // how PyTorch clears gradients
}

void read_freeze(JsonReader& params, OptimizerConfig& config) {
  const Json& freeze = params.raw("freeze_step");
  if (freeze.is_string()) {
    params.choice("freeze_step", "auto", {"auto"});
    config.freeze_step = std::nullopt;
  } else {
    config.freeze_step = params.integer("freeze_step", 100000);
    require(*config.freeze_step >= 1, "{} is {}; it is the number of warm-up updates, or \"auto\"",
            params.place("freeze_step"), *config.freeze_step);
  }
  config.freeze_window = params.integer("freeze_window", 0);
  require(config.freeze_window >= 0, "{} is {}; it is a number of steps, or 0 for 1 / (1 - beta2)",
          params.place("freeze_window"), config.freeze_window);
}

void read_moving_rows(JsonReader& params, OptimizerConfig& config) {
  const Json& mask = params.raw("exp_avg_mask");
  if (mask.is_null()) return;
  require(mask.is_object(), "{} must be {{tensor name: rows that move}}, got {}",
          params.place("exp_avg_mask"), mask.dump());
  for (const auto& [name, rows] : mask.items()) {
    require(rows.is_number_integer() && rows.get<int64_t>() >= 0,
            "{}: rows of {} must be a whole number, got {}", params.place("exp_avg_mask"), name,
            rows.dump());
    config.moving_rows[name] = rows.get<int64_t>();
  }
}

void read_compression(JsonReader& params, OptimizerConfig& config) {
  read_freeze(params, config);
  for (const char* key : {"coordinates", "variance", "scale"}) {
    require(!params.has(key),
            "{}: 1-bit Adam has one arithmetic since what travels is the gradient "
            "(docs/compression.md); remove it",
            params.place(key));
  }
  const bool deepspeed = params.choice("parity", "none", {"none", "deepspeed"}) == "deepspeed";
  if (deepspeed) {
    config.parity = Parity::kDeepSpeed;
    require(!params.boolean("bias_correction", false),
            "{}: DeepSpeed's 1-bit Adam accepts it and corrects nothing, and parity \"deepspeed\" "
            "keeps to that; set it to false or leave it out",
            params.place("bias_correction"));
    config.bias_correction = false;
    require(config.decoupled_decay, "{}: DeepSpeed's 1-bit Adam only knows decoupled decay",
            params.place("adam_w_mode"));
    require(config.freeze_step.has_value() && *config.freeze_step >= 2,
            "{}: DeepSpeed's counter starts at 1, so it must be a number of at least 2",
            params.place("freeze_step"));
  }
  require(deepspeed || !params.has("scale_of"), "{} is only for parity \"deepspeed\"",
          params.place("scale_of"));
  if (deepspeed) {
    config.scale_per_tensor = params.choice("scale_of", "tensor", {"tensor", "group"}) == "tensor";
  }
  read_moving_rows(params, config);
  require(!params.boolean("eps_inside_sqrt", false), "{}: eps stands outside the root; remove it",
          params.place("eps_inside_sqrt"));
  // For CUDA devices: cli/transport_choice.h goes by them. On CPUs what the program was launched
  // with decides.
  params.boolean("cuda_aware", false);
  if (params.has("comm_backend_name")) {
    params.choice("comm_backend_name", "nccl", {"nccl", "mpi"});
  }
}

}  // namespace

OptimizerConfig parse_optimizer_config(JsonReader reader) {
  OptimizerConfig config;
  config.type = read_type(reader);
  JsonReader params = reader.object("params");
  reader.accept("legacy_fusion");
  reader.finish();
  read_adam(params, config);
  if (config.type == OptimizerType::kOneBitAdam) read_compression(params, config);
  params.finish();
  return config;
}

}  // namespace onebit::optim
