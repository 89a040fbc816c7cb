#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/machine.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/serve/heap.h"
#include "onebit/program/serve/http_server.h"
#include "onebit/program/serve/service.h"
#include "onebit/program/serve/warm_up.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/training/interruption.h"

namespace onebit::cli {
namespace {

struct Arguments {
  std::vector<std::string> models;
  std::string host = "127.0.0.1", key_file;
  std::optional<DType> compute;
  int32_t port = 8080;
  int64_t batch_tokens = 2048, max_inputs = 32, max_waiting = 512, max_body = 2'000'000;
  int64_t grace_seconds = 30, max_sequence_length = 0;
  bool no_truncate = false, warms_up = false;
  commands::DeviceOptions device;
};

// From the file, else the variable. Errors: an empty file, or a key of several lines.
std::string read_key(const std::string& file) {
  constexpr FileKind kKey = {"a key", 4096};
  const char* variable = std::getenv("ONEBIT_API_KEY");
  if (file.empty()) return variable == nullptr ? "" : variable;
  std::string key = read_given_file(file, kKey);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  require(!key.empty() && key.find_first_of("\r\n \t") == std::string::npos,
          "{}: a key is one line without blanks", file);
  return key;
}

serve::EndpointOptions endpoint_options(const Arguments& given) {
  serve::EndpointOptions options;
  options.compute = given.compute;
  if (given.max_sequence_length > 0) options.max_sequence_length = given.max_sequence_length;
  options.max_inputs = given.max_inputs;
  options.truncates = !given.no_truncate;
  options.queue.batch_tokens = given.batch_tokens;
  options.queue.requests = given.max_waiting;
  return options;
}

std::vector<serve::ServedModel> load_models(const Arguments& given,
                                            const serve::EndpointOptions& options,
                                            serve::Metrics& metrics) {
  std::vector<serve::ServedModel> models;
  for (const serve::NamedFolder& one : serve::named_folders(given.models)) {
    serve::ServedModel model;
    model.name = one.name;
    model.context = std::make_unique<Context>(commands::make_context(given.device, 0, 1));
    model.endpoints = serve::load_endpoints(*model.context, one.folder, options, metrics);
    log_info("{}: {}, at most {} tokens", model.name, model.endpoints->kind(),
             model.endpoints->max_sequence_length());
    if (given.warms_up) {
      const Stopwatch watch;
      const int64_t texts = serve::warm_up(*model.endpoints);
      log_info("{}: ready for texts of any length after {} of them, {:.1f} s", model.name, texts,
               watch.seconds());
    }
    models.push_back(std::move(model));
  }
  return models;
}

// As many as a busy server needs, or as the system allows beside other open files.
int most_connections(int requests) {
  constexpr int64_t kUsual = 16'384, kOtherFiles = 256;
  const int64_t wanted = std::max<int64_t>(kUsual, 2 * int64_t{requests});
  return static_cast<int>(
      std::clamp<int64_t>(raise_open_files(wanted + kOtherFiles) - kOtherFiles, 1, wanted));
}

int run(const Arguments& given) {
  const training::Interruption interruption;
  serve::return_large_blocks();
  const serve::EndpointOptions options = endpoint_options(given);
  serve::ServiceOptions service_options{
      .version = ONEBIT_VERSION, .key = read_key(given.key_file), .endpoints = options};
  serve::Metrics metrics;
  std::vector<serve::ServedModel> models = load_models(given, options, metrics);
  const Device device = models.front().context->device();
  const DType compute = options.compute.value_or(training::usual_compute_type(device));
  service_options.device = name_of(device.type);
  service_options.compute = compute == training::kInt8 ? "int8"
                            : compute == DType::kF32   ? "float32"
                                                       : "bfloat16";
  serve::Service service(service_options, std::move(models), metrics);
  serve::HttpServerOptions http;
  http.host = given.host;
  http.port = given.port;
  http.limits.max_body_bytes = static_cast<size_t>(given.max_body);
  // More than may wait, so that others are refused instead, and /health answers.
  http.max_requests = static_cast<int>(std::ssize(given.models) * given.max_waiting) + 64;
  http.max_connections = most_connections(http.max_requests);
  http.grace = std::chrono::seconds(given.grace_seconds);
  serve::HttpServer server(
      http, [&](const serve::HttpRequest& request) { return service.answer(request); },
      [&](const std::string& path, const serve::HttpError& error) {
        return service.refuse(path, error);
      });
  if (!server.is_loopback() && service_options.key.empty()) {
    log_warning("everybody who reaches {} can use the models: give a key with --api-key-file",
                server.url());
  }
  show(fmt::format("serving on {}\n", server.url()));
  server.serve([&] { return interruption.asked(); }, [&] { service.stop(); });
  service.close();
  log_info("ended as asked");
  return commands::kSuccess;
}

void add_limits(commands::Command command, Arguments& given) {
  command
      .add_option("--max-batch-tokens", given.batch_tokens,
                  "Tokens that are computed at once. More need more memory, and let other requests "
                  "wait longer")
      .check(commands::whole_between(16, 1 << 20))
      .capture_default_str();
  command
      .add_option("--max-inputs", given.max_inputs, "Texts of a request, above which it is refused")
      .check(commands::whole_between(1, 1 << 16))
      .capture_default_str();
  command
      .add_option("--max-waiting", given.max_waiting,
                  "Requests of a model that wait or are computed, above which others are refused "
                  "(status 429)")
      .check(commands::whole_between(1, 16384))
      .capture_default_str();
  command.add_option("--max-body", given.max_body, "Bytes of a request, above which it is refused")
      .check(commands::whole_between(1024, 1 << 30))
      .capture_default_str();
  command
      .add_option("--max-sequence-length", given.max_sequence_length,
                  "Tokens of a text, or of a question and a window of its context, where 0 is the "
                  "length of the model's run, or as much as another program's model reads")
      .check(commands::whole_between(0, 65536))
      .capture_default_str();
  command.add_flag("--no-truncate", given.no_truncate,
                   "Refuse longer texts instead of cutting them, unless a request says otherwise");
  command
      .add_option("--grace", given.grace_seconds,
                  "Seconds in which requests may end after SIGTERM or SIGINT")
      .check(commands::whole_between(0, 3600))
      .capture_default_str();
}

}  // namespace

void add_serve(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = program.add_subcommand(
      "serve", "Answer requests over HTTP with trained models, as text-embeddings-inference does");
  command
      .add_option("--model,-m", given->models,
                  "Run, checkpoint or model folder, or NAME=FOLDER. Repeat it for several models")
      .allow_extra_args(false)
      .required();
  command.add_option("--host", given->host, "Address to listen on, where 0.0.0.0 is all")
      .capture_default_str();
  command.add_option("--port", given->port, "Port to listen on, where 0 is a free one")
      .check(commands::whole_between(0, 65535))
      .capture_default_str();
  command.add_option("--api-key-file", given->key_file,
                     "File with the key that clients send as `Authorization: Bearer KEY` (default: "
                     "the variable ONEBIT_API_KEY, or none)");
  commands::add_compute_option(command, given->compute);
  command.add_flag(
      "--warm-up", given->warms_up,
      "Compute a text of each length, up to 512 tokens, before the port opens. Without "
      "it the first text of a length takes some milliseconds longer");
  add_limits(command, *given);
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
