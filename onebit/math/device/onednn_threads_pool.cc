#include <dnnl_threadpool.hpp>
#include <dnnl_threadpool_iface.hpp>
#include <map>
#include <mutex>

#include "onebit/ground/base/parallel_for.h"
#include "onebit/math/device/onednn_stream.h"

namespace onebit {
namespace {

// Whether this thread runs a part of oneDNN's loop.
thread_local bool runs_a_part = false;

class Threads : public dnnl::threadpool_interop::threadpool_iface {
 public:
  explicit Threads(int count) : count_(count) {}
  int get_num_threads() const override { return count_; }
  bool get_in_parallel() const override { return runs_a_part; }
  uint64_t get_flags() const override { return 0; }  // parallel_for() returns when all is done
  void parallel_for(int parts, const std::function<void(int, int)>& run) override {
    run_parts(parts, [&](int part) {
      const bool before = runs_a_part;
      runs_a_part = true;
      run(part, parts);
      runs_a_part = before;
    });
  }

 private:
  int count_;
};

// Lives as long as the process, as a stream may.
Threads& threads_of(int count) {
  static std::mutex mutex;
  static auto& known = *new std::map<int, Threads>;
  const std::lock_guard lock(mutex);
  return known.try_emplace(count, count).first->second;
}

}  // namespace

dnnl::stream make_onednn_stream(const dnnl::engine& engine, int threads) {
  return dnnl::threadpool_interop::make_stream(engine, &threads_of(threads));
}

void plan_for_threads(int threads) {
  dnnl_threadpool_interop_set_max_concurrency(threads);
}

}  // namespace onebit
