// The thread that computes with one model, and the queue before it. The model's context belongs to
// this thread alone.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "onebit/program/serve/http_message.h"
#include "onebit/program/serve/metrics.h"
#include "onebit/program/serve/work_queue.h"

namespace onebit::serve {

// What is known about a call when it ends.
struct CallFigures {
  std::string model;
  int64_t inputs = 0, tokens = 0, characters = 0;
  double tokenization_seconds = 0, queue_seconds = 0, inference_seconds = 0;
};

// The client of a request has closed its connection: nobody reads the reply.
struct ClientGone {};

class ModelLane {
 public:
  // Computes the parts of a batch. After an exception it is called for each of them.
  using Compute = std::function<void(std::span<const Part>)>;
  // `threads` are the context's.
  ModelLane(const QueueLimits& limits, int threads, Metrics& metrics, Compute compute);
  ~ModelLane();
  ModelLane(const ModelLane&) = delete;
  ModelLane& operator=(const ModelLane&) = delete;

  // Returns when all parts are computed. Throws ClientGone, and as ApiError: kOverloaded,
  // kUnhealthy after close(), kBackend for a failure of the model.
  void run(const std::shared_ptr<Work>& work, const HttpRequest& request, CallFigures& figures);
  // Refuses new work. What is queued is computed.
  void close() { queue_.close(); }
  int64_t requests() const { return queue_.requests(); }

 private:
  void compute_all(int threads);
  std::string failure_of(std::span<const Part> parts) const;

  int64_t most_requests_;
  WorkQueue queue_;
  Metrics& metrics_;
  Compute compute_;
  std::thread thread_;
};

}  // namespace onebit::serve
