#include "onebit/program/serve/metrics.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace onebit::serve {
namespace {

constexpr std::array<double, 14> kSeconds = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                             0.1,    0.2,   0.5,   1,     2,    5,    10};
constexpr std::array<double, 15> kCounts = {1,   2,   4,    8,    16,   32,   64,   128,
                                            256, 512, 1024, 2048, 4096, 8192, 16384};

void append_type(std::string& text, std::string_view name, std::string_view type,
                 std::string_view help) {
  fmt::format_to(std::back_inserter(text), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace

void Histogram::add(double value) {
  for (size_t i = 0; i < bounds_.size(); ++i) counts_[i] += value <= bounds_[i] ? 1 : 0;
  ++count_;
  sum_ += value;
}

void Histogram::append_to(std::string& text, const std::string& name) const {
  for (size_t i = 0; i < bounds_.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i],
                   counts_[i]);
  }
  fmt::format_to(std::back_inserter(text),
                 "{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count_, sum_);
}

Metrics::Metrics()
    : duration_(kSeconds),
      tokenization_(kSeconds),
      queue_(kSeconds),
      inference_(kSeconds),
      batch_parts_(kCounts),
      batch_tokens_(kCounts) {}

void Metrics::count_request(const RequestRecord& record) {
  const std::lock_guard lock(mutex_);
  ++requests_[record.path];
  if (!record.error.empty()) {
    ++failures_[{record.path, record.error}];
    return;
  }
  ++successes_[record.path];
  inputs_ += record.inputs;
  tokens_ += record.tokens;
  duration_.add(record.seconds);
  tokenization_.add(record.tokenization_seconds);
  queue_.add(record.queue_seconds);
  inference_.add(record.inference_seconds);
}

void Metrics::count_batch(int64_t parts, int64_t tokens) {
  const std::lock_guard lock(mutex_);
  batch_parts_.add(static_cast<double>(parts));
  batch_tokens_.add(static_cast<double>(tokens));
}

std::string Metrics::text(int64_t queued) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto out = std::back_inserter(text);
  append_type(text, "te_request_count", "counter", "Requests, by endpoint");
  for (const auto& [path, count] : requests_) {
    fmt::format_to(out, "te_request_count{{endpoint=\"{}\"}} {}\n", path, count);
  }
  append_type(text, "te_request_success", "counter", "Requests that were answered");
  for (const auto& [path, count] : successes_) {
    fmt::format_to(out, "te_request_success{{endpoint=\"{}\"}} {}\n", path, count);
  }
  append_type(text, "te_request_failure", "counter", "Requests that were refused or failed");
  for (const auto& [key, count] : failures_) {
    fmt::format_to(out, "te_request_failure{{endpoint=\"{}\",err=\"{}\"}} {}\n", key.first,
                   key.second, count);
  }
  append_type(text, "te_inputs", "counter", "Texts of answered requests");
  fmt::format_to(out, "te_inputs {}\n", inputs_);
  append_type(text, "te_tokens", "counter", "Tokens of answered requests");
  fmt::format_to(out, "te_tokens {}\n", tokens_);
  append_type(text, "te_queue_size", "gauge", "Requests that wait or are being computed");
  fmt::format_to(out, "te_queue_size {}\n", queued);
  const auto add = [&](const std::string& name, const Histogram& histogram, const char* help) {
    append_type(text, name, "histogram", help);
    histogram.append_to(text, name);
  };
  add("te_request_duration", duration_, "Seconds of a request that was answered");
  add("te_request_tokenization_duration", tokenization_, "Seconds of its tokenization");
  add("te_request_queue_duration", queue_, "Seconds until its first batch");
  add("te_request_inference_duration", inference_, "Seconds from its first batch to its last");
  add("te_batch_next_size", batch_parts_, "Sequences of a batch");
  add("te_batch_next_tokens", batch_tokens_, "Tokens of a batch");
  return text;
}

}  // namespace onebit::serve
