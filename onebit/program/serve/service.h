// What the server answers to a request, without sockets: which model, which endpoint, errors in the
// form that its clients expect, the key, health and metrics.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/program/serve/endpoints.h"
#include "onebit/program/serve/metrics.h"

namespace onebit::serve {

struct NamedFolder {
  std::string name;
  Path folder;
};
// The values of --model: FOLDER, whose name is that of the folder, or NAME=FOLDER where there is no
// folder of this whole name. Error: two models of one name.
std::vector<NamedFolder> named_folders(const std::vector<std::string>& given);

// A model with the context that it computes in.
struct ServedModel {
  std::string name;
  std::unique_ptr<Context> context;
  std::unique_ptr<Endpoints> endpoints;
};

struct ServiceOptions {
  std::string version;  // of the program
  std::string key;      // empty: none is asked for
  std::string device = "cpu", compute = "float32";
  EndpointOptions endpoints;
};

class Service {
 public:
  // Answers with the first model that has an endpoint if a request names none.
  Service(const ServiceOptions& options, std::vector<ServedModel> models, Metrics& metrics);

  // Called from any number of threads.
  HttpReply answer(const HttpRequest& request);
  // The reply to a request that is refused before it is complete. `path` is empty if it is not
  // known yet. Called from any number of threads.
  HttpReply refuse(const std::string& path, const HttpError& error);
  // GET /health says 503 from now on.
  void stop() { stops_ = true; }
  // Work that is not queued yet is refused from now on.
  void close();

 private:
  struct Call {
    const HttpRequest& request;
    CallFigures figures = {};
    Stopwatch watch = {};
  };

  HttpReply page() const;
  std::string answer_get(const std::string& path) const;
  std::string answer_post(Call& call);
  ServedModel& model_for(const HttpRequest& request, const RequestBody& body);
  void check_key(const HttpRequest& request) const;
  Json info() const;
  Json models() const;
  // Error: there is no model of this name.
  Json model(std::string_view name) const;
  void fill_reply(Call& call, HttpReply& reply);
  int64_t requests() const;

  ServiceOptions options_;
  std::vector<ServedModel> models_;
  Metrics& metrics_;
  std::atomic<bool> stops_ = false;
};

}  // namespace onebit::serve
