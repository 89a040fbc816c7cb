// Counters of the server in Prometheus's text format, with text-embeddings-inference's names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace onebit::serve {

// Cumulative counts of values up to each bound.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}
  void add(double value);
  void append_to(std::string& text, const std::string& name) const;

 private:
  static constexpr size_t kMostBounds = 16;
  std::span<const double> bounds_;
  std::array<int64_t, kMostBounds> counts_{};
  int64_t count_ = 0;
  double sum_ = 0;
};

// What is known about a request at its end.
struct RequestRecord {
  std::string path;
  std::string error;  // the name of its kind. Empty: success
  int64_t inputs = 0, tokens = 0;
  double seconds = 0, tokenization_seconds = 0, queue_seconds = 0, inference_seconds = 0;
};

// Used by any number of threads.
class Metrics {
 public:
  Metrics();
  void count_request(const RequestRecord& record);
  void count_batch(int64_t parts, int64_t tokens);
  // `queued`: requests that wait or are being computed now.
  std::string text(int64_t queued) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> requests_, successes_;              // by path
  std::map<std::pair<std::string, std::string>, int64_t> failures_;  // by path and error
  int64_t inputs_ = 0, tokens_ = 0;
  Histogram duration_, tokenization_, queue_, inference_, batch_parts_, batch_tokens_;
};

}  // namespace onebit::serve
