// A service with small models, asked without sockets.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/program/serve/service.h"
#include "tests/base/temporary_folder.h"
#include "tests/serve/small_models.h"

namespace onebit::serve {

inline HttpRequest post(const std::string& path, const std::string& body) {
  return {.method = "POST",
          .path = path,
          .headers = {{"content-type", "application/json; charset=utf-8"}},
          .body = body};
}

inline Json json_of(const HttpReply& reply) {
  EXPECT_EQ(reply.content_type, "application/json");
  return parse_json(reply.body, "the reply");
}

inline std::vector<float> numbers_of(const Json& list) {
  return list.get<std::vector<float>>();
}

// The largest difference, or infinity if the sizes differ.
inline double difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  }
  return largest;
}

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    options_.version = "1.2.3";
    options_.endpoints.max_inputs = 4;
    options_.endpoints.queue = {.batch_tokens = 100, .batch_parts = 8, .requests = 64};
  }

  // Serves models that lie in the test's folder.
  void serve(const std::vector<std::string>& names) {
    std::vector<ServedModel> models;
    for (const std::string& name : names) {
      ServedModel& model = models.emplace_back();
      model.name = name;
      model.context = std::make_unique<Context>(Context::cpu(1));
      model.endpoints = load_endpoints(*model.context, at(name), options_.endpoints, metrics_);
    }
    service_.emplace(options_, std::move(models), metrics_);
  }
  void serve_encoder() {
    write_small_encoder(at("embed"));
    serve({"embed"});
  }

  Path at(const std::string& name) const { return folder_ / name; }
  HttpReply ask(const std::string& path, const std::string& body) {
    return service_->answer(post(path, body));
  }
  HttpReply get(const std::string& path) {
    return service_->answer({.method = "GET", .path = path});
  }
  Json answer(const std::string& path, const std::string& body) {
    const HttpReply reply = ask(path, body);
    EXPECT_EQ(reply.status, 200) << path << " " << body << ": " << reply.body;
    return json_of(reply);
  }
  void expect_refusal(const std::string& path, const std::string& body, int status,
                      const std::string& type, const std::string& words) {
    const HttpReply reply = ask(path, body);
    EXPECT_EQ(reply.status, status) << path << " " << body << ": " << reply.body;
    const Json error = json_of(reply);
    const bool is_openai = error.contains("code");
    EXPECT_EQ(is_openai, path.starts_with("/v1/")) << reply.body;
    EXPECT_EQ(error.at(is_openai ? "type" : "error_type"), type) << path << " " << body;
    EXPECT_THAT(error.at(is_openai ? "message" : "error").get<std::string>(),
                testing::HasSubstr(words));
  }

  TemporaryFolder folder_;
  ServiceOptions options_;
  Metrics metrics_;
  std::optional<Service> service_;
};

}  // namespace onebit::serve
