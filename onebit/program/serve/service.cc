#include "onebit/program/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/serve/access_key.h"
#include "onebit/program/serve/character_places.h"
#include "onebit/program/serve/heap.h"
#include "onebit/program/serve/page.h"
#include "onebit/program/serve/reply_json.h"

namespace onebit::serve {
namespace {

constexpr std::array<std::string_view, 7> kGetPaths = {"/",        "/info",      "/health", "/ping",
                                                       "/metrics", "/v1/models", "/models"};
constexpr std::array<std::string_view, 15> kPostPaths = {
    "/",           "/embed",   "/embed_all", "/similarity", "/v1/embeddings",
    "/embeddings", "/predict", "/rerank",    "/v1/rerank",  "/v2/rerank",
    "/tag",        "/answer",  "/fill",      "/tokenize",   "/decode"};
constexpr std::string_view kModelPath = "/v1/models/";  // and a model's name

template <typename Paths>
bool is_among(const Paths& paths, std::string_view path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

bool is_read(std::string_view path) {
  return is_among(kGetPaths, path) || path.starts_with(kModelPath);
}

bool may_ask(std::string_view path, std::string_view method) {
  if (method == "POST") return is_among(kPostPaths, path);
  return (method == "GET" || method == "HEAD") && is_read(path);
}

// "GET, HEAD". Empty: there is no such path.
std::string methods_of(std::string_view path) {
  std::string methods = is_read(path) ? "GET, HEAD" : "";
  if (is_among(kPostPaths, path)) methods += methods.empty() ? "POST" : ", POST";
  return methods;
}

void check_path(const HttpRequest& request) {
  if (may_ask(request.path, request.method)) return;
  const std::string methods = methods_of(request.path);
  if (methods.empty()) {
    throw ApiError(ErrorKind::kNotFound, fmt::format("there is no {}", request.path));
  }
  throw ApiError(ErrorKind::kMethod,
                 fmt::format("{} takes {}, not {}", request.path, methods, request.method));
}

// Pages of other sites can make a browser send any body, but not with this type.
void check_content_type(const HttpRequest& request) {
  std::string type(request.header("content-type").value_or(""));
  type.resize(std::min(type.find_first_of("; \t"), type.size()));
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (type == "application/json") return;
  throw ApiError(ErrorKind::kMediaType, "the header `Content-Type: application/json` is missing");
}

// Appends tokens as parts of a list, each with a comma behind it.
void append_tokens(Tokenizers& tokenizers, const std::string& text, std::string& reply) {
  // What a token has beside its text, with the largest numbers.
  constexpr size_t kTokenBytes = 100;
  const std::vector<text::Piece> pieces = tokenizers.encode_with_offsets(text);
  const CharacterPlaces characters(text);
  reserve_more(text.size() + pieces.size() * kTokenBytes, reply);
  for (const text::Piece& piece : pieces) {
    fmt::format_to(std::back_inserter(reply), R"({{"id":{},"text":)", piece.id);
    append_json(std::string_view(text).substr(piece.begin, piece.end - piece.begin), reply);
    fmt::format_to(std::back_inserter(reply), R"(,"special":false,"start":{},"stop":{}}},)",
                   characters.at(piece.begin), characters.at(piece.end));
  }
}

// Appends the tokens of a text, or of two that the model reads as one sequence, each with its
// places in characters of its own text.
void append_tokens(Tokenizers& tokenizers, const SequenceInput& input, bool has_special,
                   std::string& reply) {
  const text::Vocabulary& vocabulary = tokenizers.vocabulary();
  const auto append_special = [&](int32_t id) {
    if (!has_special) return;
    fmt::format_to(std::back_inserter(reply), R"({{"id":{},"text":)", id);
    append_json(vocabulary.token(id), reply);
    reply += R"(,"special":true,"start":null,"stop":null},)";
  };
  reply += '[';
  append_special(vocabulary.cls_id());
  append_tokens(tokenizers, input.first, reply);
  if (input.second) {
    for (int i = 0; i < vocabulary.pair_template().separators; ++i) {
      append_special(vocabulary.sep_id());
    }
    append_tokens(tokenizers, *input.second, reply);
  }
  append_special(vocabulary.sep_id());
  end_list(reply);
}

// A text, a list of texts, or a list of lists of one or two.
std::vector<SequenceInput> tokenized_inputs(const RequestBody& body, int64_t most) {
  const Json& inputs = body.require("inputs");
  if (!inputs.is_array()) return {{body.require_text("inputs")}};
  if (!inputs.empty() && inputs.front().is_array()) {
    bool is_list = true;
    return body.sequences("inputs", most, is_list);
  }
  std::vector<SequenceInput> all;
  for (std::string& text : body.texts("inputs", most)) all.push_back({std::move(text)});
  return all;
}

std::string tokenize(Tokenizers& tokenizers, const RequestBody& body, int64_t most) {
  const bool has_special = body.boolean("add_special_tokens", true);
  std::string reply = "[";
  for (const SequenceInput& input : tokenized_inputs(body, most)) {
    append_tokens(tokenizers, input, has_special, reply);
    reply += ',';
  }
  end_list(reply);
  return reply;
}

std::string decode(Tokenizers& tokenizers, const RequestBody& body, int64_t most) {
  const bool skips_special = body.boolean("skip_special_tokens", true);
  std::string reply = "[";
  for (const TextInput& input : body.inputs("ids", most)) {
    if (!input.ids) throw ApiError(ErrorKind::kValidation, "`ids` is not a list of ids");
    const std::vector<int32_t> ids = tokenizers.checked(*input.ids);
    try {
      append_json(tokenizers.vocabulary().decode(ids, skips_special), reply);
    } catch (const Error& error) {
      throw ApiError(ErrorKind::kTokenizer, error.what());
    }
    reply += ',';
  }
  end_list(reply);
  return reply;
}

std::string in_milliseconds(double seconds) {
  return fmt::format("{:.3f}", seconds * 1e3);
}

void add_headers(const CallFigures& figures, const std::string& device, double seconds,
                 HttpReply& reply) {
  reply.headers.insert(reply.headers.end(),
                       {{"x-compute-type", device},
                        {"x-compute-time",
                         in_milliseconds(figures.tokenization_seconds + figures.inference_seconds)},
                        {"x-compute-characters", std::to_string(figures.characters)},
                        {"x-compute-tokens", std::to_string(figures.tokens)},
                        {"x-total-time", in_milliseconds(seconds)},
                        {"x-tokenization-time", in_milliseconds(figures.tokenization_seconds)},
                        {"x-queue-time", in_milliseconds(figures.queue_seconds)},
                        {"x-inference-time", in_milliseconds(figures.inference_seconds)}});
}

}  // namespace

std::vector<NamedFolder> named_folders(const std::vector<std::string>& given) {
  std::vector<NamedFolder> models;
  for (const std::string& value : given) {
    const size_t equals = value.find('=');
    NamedFolder model;
    // The name of a folder may have the sign: runs/lr=1e-4.
    if (equals != std::string::npos && !std::filesystem::is_directory(value)) {
      model = {value.substr(0, equals), value.substr(equals + 1)};
    } else {
      const Path folder = Path(value).lexically_normal();
      model = {(folder.has_filename() ? folder : folder.parent_path()).filename().string(), value};
    }
    require(!model.name.empty() && !model.folder.empty(), "--model {}: give FOLDER, or NAME=FOLDER",
            value);
    for (const NamedFolder& other : models) {
      require(other.name != model.name,
              "two models are called {} ({} and {}): name them with --model NAME=FOLDER",
              model.name, other.folder.string(), model.folder.string());
    }
    models.push_back(std::move(model));
  }
  return models;
}

Service::Service(const ServiceOptions& options, std::vector<ServedModel> models, Metrics& metrics)
    : options_(options), models_(std::move(models)), metrics_(metrics) {}

void Service::close() {
  for (ServedModel& model : models_) model.endpoints->lane().close();
}

int64_t Service::requests() const {
  int64_t sum = 0;
  for (const ServedModel& model : models_) sum += model.endpoints->lane().requests();
  return sum;
}

void Service::check_key(const HttpRequest& request) const {
  if (options_.key.empty() || request.path == "/health" || request.path == "/ping" ||
      request.path == "/") {
    return;
  }
  if (!has_key(request, options_.key)) {
    throw ApiError(ErrorKind::kUnauthorized, "the key is missing or wrong");
  }
}

namespace {

// A model as OpenAI lists it.
Json listing(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", 0},
          {"owned_by", "onebit"},
          {"kind", model.endpoints->kind()}};
}

ApiError not_served(std::string_view name, const std::vector<std::string>& names) {
  return {ErrorKind::kNotFound,
          fmt::format("the model {} is not served; there is: {}", quote(name), listed(names))};
}

}  // namespace

Json Service::info() const {
  const auto info_of = [&](const ServedModel& model) {
    const EndpointOptions& limits = options_.endpoints;
    return Json{{"model_id", model.name},
                {"model_sha", nullptr},
                {"model_dtype", options_.compute},
                {"model_type", model.endpoints->model_type()},
                {"max_concurrent_requests", limits.queue.requests},
                {"max_input_length", model.endpoints->max_sequence_length()},
                {"max_batch_tokens", limits.queue.batch_tokens},
                {"max_batch_requests", limits.queue.batch_parts},
                {"max_client_batch_size", limits.max_inputs},
                {"auto_truncate", limits.truncates},
                {"tokenization_workers", 0},
                {"version", options_.version},
                {"sha", nullptr},
                {"docker_label", nullptr}};
  };
  Json info = info_of(models_.front());
  if (models_.size() > 1) {
    info["models"] = Json::array();
    for (const ServedModel& model : models_) info["models"].push_back(info_of(model));
  }
  return info;
}

Json Service::models() const {
  Json data = Json::array();
  for (const ServedModel& model : models_) data.push_back(listing(model));
  return {{"object", "list"}, {"data", std::move(data)}};
}

Json Service::model(std::string_view name) const {
  std::vector<std::string> names;
  for (const ServedModel& model : models_) {
    if (model.name == name) return listing(model);
    names.push_back(model.name);
  }
  throw not_served(name, names);
}

// Models have names that only those who have the key may read.
HttpReply Service::page() const {
  std::vector<PageModel> models;
  for (const ServedModel& model : models_) {
    if (options_.key.empty()) models.push_back({model.name, model.endpoints->kind()});
  }
  return page_reply(options_.version, models);
}

std::string Service::answer_get(const std::string& path) const {
  if (path == "/health" || path == "/ping") {
    if (stops_) throw ApiError(ErrorKind::kUnhealthy, "the server is about to end");
    return "";
  }
  if (path.starts_with(kModelPath)) return json_text(model(path.substr(kModelPath.size())));
  return json_text(path == "/info" ? info() : models());
}

ServedModel& Service::model_for(const HttpRequest& request, const RequestBody& body) {
  const std::string name = body.text("model", "");
  const bool is_general =
      request.path == "/tokenize" || request.path == "/decode" || request.path == "/";
  const auto answers = [&](const ServedModel& model) {
    return is_general || model.endpoints->has(request.path);
  };
  std::vector<std::string> names;
  for (ServedModel& model : models_) {
    names.push_back(model.name);
    if (!name.empty() ? model.name != name : !answers(model)) continue;
    if (answers(model)) return model;
    throw ApiError(ErrorKind::kBackend, fmt::format("the model {} is a model of kind \"{}\", which "
                                                    "does not answer {}",
                                                    name, model.endpoints->kind(), request.path));
  }
  if (!name.empty()) throw not_served(name, names);
  throw ApiError(ErrorKind::kBackend,
                 fmt::format("no model that is served answers {}: {} is of kind "
                             "\"{}\"",
                             request.path, names.front(), models_.front().endpoints->kind()));
}

std::string Service::answer_post(Call& call) {
  const RequestBody body(call.request.body);
  ServedModel& model = model_for(call.request, body);
  call.figures.model = model.name;
  const int64_t most = options_.endpoints.max_inputs;
  Tokenizers& tokenizers = model.endpoints->tokenizers();
  if (call.request.path == "/tokenize") return tokenize(tokenizers, body, most);
  if (call.request.path == "/decode") return decode(tokenizers, body, most);
  const std::string_view path =
      call.request.path == "/" ? model.endpoints->main_path() : call.request.path;
  return model.endpoints->answer(path, call.request, body, call.figures);
}

void Service::fill_reply(Call& call, HttpReply& reply) {
  const std::string& path = call.request.path;
  check_key(call.request);
  check_path(call.request);
  if (call.request.method == "POST") {
    check_content_type(call.request);
    reply.body = answer_post(call);
    add_headers(call.figures, options_.device, call.watch.seconds(), reply);
  } else if (path == "/metrics") {
    reply.content_type = "text/plain; version=0.0.4";
    reply.body = metrics_.text(requests());
  } else if (path == "/") {
    reply = page();
  } else {
    reply.body = answer_get(path);
  }
}

HttpReply Service::refuse(const std::string& path, const HttpError& error) {
  const ApiError api_error = api_error_of(error);
  if (is_among(kPostPaths, path)) {
    RequestRecord record;
    record.path = path;
    record.error = name_of(api_error.kind());
    metrics_.count_request(record);
  }
  return error_reply(path, api_error, error.status());
}

HttpReply Service::answer(const HttpRequest& request) {
  Call call{request};
  HttpReply reply;
  RequestRecord record;
  const auto refuse_as = [&](const ApiError& error) {
    record.error = name_of(error.kind());
    reply = error_reply(request.path, error);
  };
  try {
    fill_reply(call, reply);
  } catch (const ApiError& error) {
    refuse_as(error);
    if (error.kind() == ErrorKind::kMethod) {
      reply.headers.emplace_back("Allow", methods_of(request.path));
    }
  } catch (const ClientGone&) {
    refuse_as(ApiError(ErrorKind::kClientGone, "the client has gone"));
  } catch (const std::exception& problem) {
    refuse_as(ApiError(ErrorKind::kBackend, failure_text(problem)));
  }
  return_free_memory(request.body.size());
  if (request.method != "POST" || !is_among(kPostPaths, request.path)) return reply;
  record.path = request.path;
  record.inputs = call.figures.inputs;
  record.tokens = call.figures.tokens;
  record.seconds = call.watch.seconds();
  record.tokenization_seconds = call.figures.tokenization_seconds;
  record.queue_seconds = call.figures.queue_seconds;
  record.inference_seconds = call.figures.inference_seconds;
  metrics_.count_request(record);
  return reply;
}

}  // namespace onebit::serve
