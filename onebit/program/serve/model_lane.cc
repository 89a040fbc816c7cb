#include "onebit/program/serve/model_lane.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/program/serve/api_error.h"

namespace onebit::serve {

ModelLane::ModelLane(const QueueLimits& limits, int threads, Metrics& metrics, Compute compute)
    : most_requests_(limits.requests),
      queue_(limits),
      metrics_(metrics),
      compute_(std::move(compute)),
      thread_([this, threads] { compute_all(threads); }) {}

ModelLane::~ModelLane() {
  queue_.close();
  thread_.join();
}

void ModelLane::compute_all(int threads) {
  set_library_threads(threads);
  for (;;) {
    const std::vector<Part> batch = queue_.take();
    if (batch.empty()) return;
    int64_t tokens = 0;
    for (const Part& part : batch) tokens += part.work->tokens(part.index);
    metrics_.count_batch(static_cast<int64_t>(batch.size()), tokens);
    const std::string failure = failure_of(batch);
    if (failure.empty() || batch.size() == 1) {
      queue_.end(batch, failure);
      continue;
    }
    // One part must not fail the requests of others.
    for (const Part& part : batch) queue_.end({&part, 1}, failure_of({&part, 1}));
  }
}

std::string ModelLane::failure_of(std::span<const Part> parts) const {
  try {
    compute_(parts);
  } catch (const std::exception& problem) {
    log_error("{}", failure_text(problem));
    return failure_text(problem);
  }
  return "";
}

void ModelLane::run(const std::shared_ptr<Work>& work, const HttpRequest& request,
                    CallFigures& figures) {
  constexpr std::chrono::milliseconds kTurn{100};  // between two looks at the client
  switch (queue_.push(work)) {
    case WorkQueue::Entry::kQueued:
      break;
    case WorkQueue::Entry::kFull:
      throw ApiError(
          ErrorKind::kOverloaded,
          fmt::format("the model is overloaded: {} requests wait (--max-waiting)", most_requests_));
    case WorkQueue::Entry::kClosed:
      throw ApiError(ErrorKind::kUnhealthy, "the server is about to end");
  }
  while (!work->wait_for(kTurn)) {
    if (!request.is_gone || !request.is_gone()) continue;
    queue_.cancel(work);
    throw ClientGone{};
  }
  figures.queue_seconds += work->queue_seconds();
  figures.inference_seconds += work->inference_seconds();
  if (!work->failure().empty()) throw ApiError(ErrorKind::kBackend, work->failure());
}

}  // namespace onebit::serve
