// What the commands prepare, convert, plan and doctor compute, as JSON.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/vocabulary_choice.h"
#include "onebit/data/samples/import.h"
#include "onebit/exchange/engine/batch_sizes.h"
#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/linear.h"
#include "onebit/program/cli/collect_host_facts.h"
#include "onebit/program/cli/model_sizes.h"
#include "onebit/program/convert/convert.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/program/plan/plan_output.h"
#include "onebit/program/plan/quantity.h"
#include "onebit/program/plan/run_plan.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/costs/machine_check.h"
#include "onebit/training/finetune/model_vocabulary.h"
#include "onebit/training/training/model_folder.h"
#include "python/src/module.h"
#include "python/src/recipes.h"

namespace onebit::python {
namespace {

using namespace nb::literals;

using Text = const std::string&;
using OptionalText = const std::optional<std::string>&;

int checked_threads(int threads) {
  require(threads >= 0 && threads <= commands::kMaxThreads,
          "threads must be between 0 (all) and {}, not {}", commands::kMaxThreads, threads);
  return threads > 0 ? threads : available_threads();
}

std::optional<text::Casing> casing_of(std::optional<bool> cased) {
  if (!cased) return std::nullopt;
  return *cased ? text::Casing::kCased : text::Casing::kUncased;
}

// The value of a word. Error: another word.
template <typename Value>
Value chosen(const std::map<std::string, Value>& named, Text word, const char* argument) {
  const auto found = named.find(word);
  std::vector<std::string> words;
  for (const auto& entry : named) words.push_back(entry.first);
  require(found != named.end(), "{} is one of {}, not \"{}\"", argument, fmt::join(words, ", "),
          word);
  return found->second;
}

// Calls Python's function with the progress, and lets handlers of signals run: an exception of one
// of them, for example KeyboardInterrupt, ends the work.
void report(const nb::object& function, const Json& progress) {
  const std::string text = json_text(progress);
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  if (!function.is_none()) function(text);
}

Json to_json(const corpus::PrepareProgress& progress) {
  return {{"phase", progress.phase},
          {"done_bytes", progress.done_bytes},
          {"total_bytes", progress.total_bytes},
          {"text_bytes", progress.text_bytes},
          {"seconds", progress.seconds},
          {"seconds_left", progress.seconds_left < 0 ? Json() : Json(progress.seconds_left)}};
}

struct TextOptions {
  std::optional<int32_t> vocabulary_size;
  std::optional<std::string> vocabulary;
  std::string vocabulary_kind;
  std::optional<bool> cased;
  std::string format, locale;
  int threads;
  bool overwrite, drops_duplicates, skips_bad_records;
};

corpus::TextFormat checked_format(Text word) {
  constexpr const char* kWords[] = {"auto", "lines", "prose", "documents", "jsonl"};
  require(std::ranges::find(kWords, word) != std::end(kWords), "format is one of {}, not \"{}\"",
          fmt::join(kWords, ", "), word);
  return corpus::text_format_from_name(word);
}

std::string prepare(const std::vector<std::string>& inputs, Text output, const TextOptions& given,
                    const nb::object& progress) {
  require(
      given.vocabulary.has_value() != given.vocabulary_size.has_value(),
      "give either vocab_size (a vocabulary is learned from the text) or vocab (a vocab.txt, or "
      "a model's folder)");
  require(given.vocabulary_size.value_or(1) >= 1, "vocab_size must be at least 1, not {}",
          given.vocabulary_size.value_or(1));
  corpus::PrepareOptions options;
  options.inputs.assign(inputs.begin(), inputs.end());
  options.output = output;
  options.vocabulary_size = given.vocabulary_size;
  options.vocabulary_kind = corpus::vocabulary_kind_from_name(given.vocabulary_kind);
  require(given.vocabulary_size || options.vocabulary_kind == corpus::VocabularyKind::kWordPiece,
          "vocab_type is for vocab_size, and vocab was given");
  options.casing = casing_of(given.cased);
  options.format = checked_format(given.format);
  options.locale = given.locale;
  options.threads = checked_threads(given.threads);
  options.overwrite = given.overwrite;
  options.drop_duplicates = given.drops_duplicates;
  if (given.skips_bad_records) options.left_out = corpus::LeftOut::kBad;
  options.progress = [&](const corpus::PrepareProgress& done) { report(progress, to_json(done)); };
  const nb::gil_scoped_release release;
  if (given.vocabulary) finetune::take_vocabulary(*given.vocabulary, options);
  const corpus::PrepareReport made = corpus::prepare(options);
  return json_text({{"output", output},
                    {"manifest", corpus::manifest_to_json(made.manifest)},
                    {"decisions", made.decisions},
                    {"duplicate_tokens", made.duplicate_tokens},
                    {"long_sentence_tokens", made.long_sentence_tokens},
                    {"seconds", made.seconds},
                    {"megabytes_per_second", made.megabytes_per_second}});
}

std::string prepare_text(const std::vector<std::string>& inputs, Text output,
                         std::optional<int32_t> vocabulary_size, OptionalText vocabulary,
                         Text vocabulary_kind, std::optional<bool> cased, Text format, Text locale,
                         int threads, bool overwrite, bool drops_duplicates, bool skips_bad_records,
                         const nb::object& progress) {
  return prepare(inputs, output,
                 {.vocabulary_size = vocabulary_size,
                  .vocabulary = vocabulary,
                  .vocabulary_kind = vocabulary_kind,
                  .cased = cased,
                  .format = format,
                  .locale = locale,
                  .threads = threads,
                  .overwrite = overwrite,
                  .drops_duplicates = drops_duplicates,
                  .skips_bad_records = skips_bad_records},
                 progress);
}

std::string prepare_samples(const std::vector<std::string>& inputs, Text output, Text from,
                            Text vocabulary, std::optional<bool> cased, bool overwrite,
                            const nb::object& progress) {
  const nb::gil_scoped_release release;
  corpus::PrepareOptions text;
  text.threads = 1;
  finetune::take_vocabulary(vocabulary, text);
  text.casing = casing_of(cased);
  const corpus::ChosenVocabulary choice = corpus::choose_vocabulary(text, {}, {});
  samples::ImportOptions options;
  options.inputs.assign(inputs.begin(), inputs.end());
  options.format = chosen<samples::SampleFormat>(
      {{"hdf5", samples::SampleFormat::kHdf5}, {"tfrecord", samples::SampleFormat::kTfRecord}},
      from, "source");
  options.output = output;
  options.vocabulary = choice.vocabulary;
  options.vocabulary_place = vocabulary;
  options.casing = choice.casing;
  options.overwrite = overwrite;
  options.progress = [&](const samples::ImportProgress& done) {
    report(progress, {{"phase", "reading examples"},
                      {"done_bytes", done.done_bytes},
                      {"total_bytes", done.total_bytes},
                      {"samples", done.samples},
                      {"seconds", done.seconds},
                      {"seconds_left", done.seconds_left < 0 ? Json() : Json(done.seconds_left)}});
  };
  samples::ImportReport made = samples::import_samples(options);
  std::vector<std::string> decisions = choice.decisions;
  decisions.insert(decisions.end(), made.decisions.begin(), made.decisions.end());
  return json_text({{"output", output},
                    {"manifest", samples::manifest_to_json(made.manifest)},
                    {"decisions", std::move(decisions)},
                    {"file_bytes", made.file_bytes},
                    {"seconds", made.seconds}});
}

std::vector<std::string> convert_checkpoint(Text input, Text output, OptionalText source,
                                            OptionalText config, OptionalText vocabulary,
                                            std::optional<int64_t> heads, OptionalText activation,
                                            std::optional<bool> cased,
                                            const std::vector<std::string>& drop,
                                            OptionalText dtype, Text naming) {
  require(heads.value_or(1) >= 1, "heads must be at least 1, not {}", heads.value_or(1));
  convert::ConvertOptions options;
  options.input = input;
  options.output = output;
  if (source) options.from = chosen(convert::kKinds, *source, "source");
  if (config) options.config = *config;
  if (vocabulary) options.vocabulary = *vocabulary;
  options.heads = heads;
  if (activation) options.activation = chosen(convert::kActivations, *activation, "hidden_act");
  options.casing = casing_of(cased);
  if (dtype) options.dtype = chosen(convert::kTypes, *dtype, "dtype");
  options.naming = chosen(convert::kNamings, naming, "naming");
  options.drop = drop;
  const nb::gil_scoped_release release;
  return convert::convert(options);
}

pretrain::PretrainingConfig planned_recipe(const GivenRecipe& given, OptionalText model) {
  require(!model || training::model_folder_in(*model),
          "{}: model: no model found; give a model "
          "folder, a run or a checkpoint",
          model.value_or(""));
  Recipe recipe = given.load();
  recipe.values = cli::with_sizes_of_model(std::move(recipe.values), model.value_or(""));
  const inspect::TaskKind& task = inspect::task_of(recipe);
  require(std::string_view(task.name) == pretrain::kPretrainingTask,
          "{}: is a recipe of the task {}, but only pre-training can be planned", recipe.place,
          task.name);
  return pretrain::parse_pretraining_recipe(recipe, std::nullopt);
}

plan::PlannedCluster planned_cluster(int hosts, int ranks_per_host, Text bandwidth, Text latency) {
  constexpr int kMostHosts = 65536;
  const auto rate = plan::parse_bandwidth(bandwidth);
  require(rate.has_value(), "bandwidth: \"{}\" is not a bandwidth: give {}", bandwidth,
          plan::kBandwidthForm);
  const auto seconds = plan::parse_latency(latency);
  require(seconds.has_value(), "latency: \"{}\" is not a latency: give {}", latency,
          plan::kLatencyForm);
  require(hosts >= 1 && ranks_per_host >= 1 && ranks_per_host <= commands::kMaxThreads &&
              int64_t{hosts} * ranks_per_host <= kMostHosts,
          "hosts {} with ranks_per_host {}: a plan has from 1 to {} ranks", hosts, ranks_per_host,
          kMostHosts);
  return {.hosts = hosts,
          .ranks_per_host = ranks_per_host,
          .host_parts = ranks_per_host,
          .bandwidth = *rate,
          .latency = *seconds};
}

std::string plan_run(const GivenRecipe& recipe, int hosts, int ranks_per_host, Text bandwidth,
                     Text latency, OptionalText measured, double watts, int threads,
                     OptionalText model) {
  constexpr double kMostWatts = 1e6;
  require(watts >= 0 && watts <= kMostWatts, "watts must be between 0 and {}, not {}", kMostWatts,
          watts);
  const plan::PlanRequest request{
      .cluster = planned_cluster(hosts, ranks_per_host, bandwidth, latency),
      .watts_per_host = watts};
  const int compute_threads = checked_threads(threads);
  const nb::gil_scoped_release release;
  const pretrain::PretrainingConfig config = planned_recipe(recipe, model);
  engine::solve_batch_sizes(config.engine.batch, request.cluster.ranks(), recipe.place());
  Context context = Context::cpu(compute_threads);
  const costs::MachineCosts machine =
      measured ? costs::read_machine_costs(*measured) : costs::measure_machine_costs(context);
  return json_text(plan::to_json(plan::make_plan(context, config, machine, request)));
}

std::string doctor(bool measures, int threads) {
  const int compute_threads = checked_threads(threads);
  const nb::gil_scoped_release release;
  Context context = Context::cpu(compute_threads);
  costs::ProgramFacts program = costs::program_facts(context);
  if (measures) costs::measure_speed(context, program);
  Json facts = cluster::to_json(cli::find_host_facts({}));
  facts.erase("program_checksum");  // of the interpreter
  facts["threads"] = program.threads;
  facts["native_bf16"] = program.native_bf16;
  facts["int8"] = program.int8_problem.empty();
  if (measures) {
    facts["f32_operations_per_second"] = program.f32;
    facts["bf16_operations_per_second"] = program.bf16;
    facts["int8_operations_per_second"] = program.int8;
    facts["memory_bytes_per_second"] = program.memory;
  }
  facts["problems"] = costs::concerns(read_machine(), program);
  return json_text(facts);
}

// Facts about the package that need no measurement.
std::string info() {
  const nb::gil_scoped_release release;
  Context context = Context::cpu(1);
  const std::string mpi = transport::mpi_problem();
  Json transports = {"threads", "tcp"};
  if (mpi.empty()) transports.push_back("mpi");
  if (transport::nccl_is_built()) transports.push_back("nccl");
  const int cuda = cuda_version();
  return json_text(
      {{"onebit", ONEBIT_VERSION},
       {"instruction_set", onednn_instruction_set()},
       {"native_bf16", ops::bf16_is_native(context)},
       {"processors", available_threads()},
       {"onednn", onednn_version()},
       {"transports", std::move(transports)},
       {"mpi", mpi.empty() ? transport::mpi_version() : mpi},
       {"cuda", cuda == 0 ? Json() : Json(fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10))},
       {"cuda_devices", memory::cuda_device_count()}});
}

}  // namespace

void bind_tools(nb::module_& module) {
  module.def("prepare_text", &prepare_text, "inputs"_a, "output"_a, "vocabulary_size"_a.none(),
             "vocabulary"_a.none(), "vocabulary_kind"_a, "cased"_a.none(), "format"_a, "locale"_a,
             "threads"_a, "overwrite"_a, "drops_duplicates"_a, "skips_bad_records"_a,
             "progress"_a.none());
  module.def("prepare_samples", &prepare_samples, "inputs"_a, "output"_a, "source"_a,
             "vocabulary"_a, "cased"_a.none(), "overwrite"_a, "progress"_a.none());
  module.def("convert", &convert_checkpoint, "input"_a, "output"_a, "source"_a.none(),
             "config"_a.none(), "vocabulary"_a.none(), "heads"_a.none(), "activation"_a.none(),
             "cased"_a.none(), "drop"_a, "dtype"_a.none(), "naming"_a);
  module.def("plan", &plan_run, "recipe"_a, "hosts"_a, "ranks_per_host"_a, "bandwidth"_a,
             "latency"_a, "measured"_a.none(), "watts"_a, "threads"_a, "model"_a.none());
  module.def("doctor", &doctor, "measures"_a, "threads"_a);
  module.def("info", &info);
}

}  // namespace onebit::python
