#include "onebit/math/device/context.h"

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/math/device/device_stream.h"
#include "onebit/math/device/onednn_stream.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/device/scratch.h"

namespace onebit {

Context::Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Context Context::cpu(int threads) {
  require(threads >= 1, "a CPU context needs at least one thread, {} requested", threads);
  Context context;
  context.threads_ = threads;
  set_library_threads(threads);
  context.onednn_ = std::make_unique<OnednnStream>(threads);
  context.scratch_ = std::make_unique<Scratch>();
  return context;
}

Context Context::cuda(int index, int threads) {
  require(threads >= 1, "a context needs at least one thread, {} requested", threads);
  Context context;
  context.device_ = {DeviceType::kCuda, index};
  context.threads_ = threads;
  context.cuda_ = DeviceStream::open(index);
  return context;
}

OnednnStream& Context::onednn() const {
  ONEBIT_INVARIANT(onednn_ != nullptr);
  return *onednn_;
}

DeviceStream& Context::cuda() const {
  ONEBIT_INVARIANT(cuda_ != nullptr);
  return *cuda_;
}

Scratch& Context::scratch() const {
  ONEBIT_INVARIANT(scratch_ != nullptr);
  return *scratch_;
}

void Context::parallel_for(int64_t count, int64_t grain,
                           const std::function<void(int64_t, int64_t)>& body) const {
  onebit::parallel_for(threads_, count, grain, body);
}

void Context::synchronize() const {
  if (cuda_ == nullptr) return;
  const OperationSpan span(*this, "wait for the device", [] { return Work(); });
  cuda_->synchronize();
}

Milestone Context::milestone() const {
  return cuda_ != nullptr ? Milestone(cuda_->record()) : Milestone();
}

void Context::wait_for(const Milestone& milestone) const {
  if (cuda_ != nullptr && milestone.event_ != nullptr) cuda_->wait_for(milestone.event_);
}

}  // namespace onebit
