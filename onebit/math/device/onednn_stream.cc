#include "onebit/math/device/onednn_stream.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/memory.h"

namespace onebit {

namespace {

// Memory for a copy in this layout, which is written next.
Buffer buffer_for(const dnnl::memory::desc& layout) {
  Buffer buffer(Device{}, static_cast<int64_t>(layout.get_size()));
  memory::prepare(buffer.data(), buffer.size_bytes(), memory::Use::kWhole);
  return buffer;
}

}  // namespace

void PackedWeights::add(const void* begin, const void* end) {
  const auto* past = static_cast<Address>(end);
  Range& range = ranges_.try_emplace(static_cast<Address>(begin), Range{past, 0, {}}).first->second;
  ONEBIT_INVARIANT(range.end == past);
  ++range.users;
}

void PackedWeights::changed(const void* begin) {
  Range& range = ranges_.at(static_cast<Address>(begin));
  ONEBIT_INVARIANT(range.let_go.empty());
  for (auto& [weights, copies] : range.copies) {
    for (Copy& copy : copies) copy.current = false;
  }
}

void PackedWeights::let_go(const void* begin, const void* end) {
  Range& range = ranges_.at(range_of(begin)->first);
  const std::vector<Copy>& copies = range.copies.at(static_cast<Address>(begin));
  ONEBIT_INVARIANT(!copies.empty() && copies.front().current);
  range.let_go[static_cast<Address>(begin)] = static_cast<Address>(end);
}

void PackedWeights::quantise(const void* begin, const void* end, QuantisedWeight rounded,
                             dnnl::stream& stream) {
  const auto* address = static_cast<Address>(begin);
  Range& range = ranges_.at(range_of(begin)->first);
  std::vector<Copy>& copies = range.copies[address];
  ONEBIT_INVARIANT(copies.empty());
  Buffer packed = buffer_for(rounded.layout);
  dnnl::memory from(rounded.plain, stream.get_engine(), const_cast<void*>(rounded.values));
  dnnl::memory to(rounded.layout, stream.get_engine(), packed.data());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  copies.push_back({rounded.plain, rounded.layout, std::move(packed), true});
  range.quantised.insert_or_assign(address, std::move(rounded.columns));
  let_go(begin, end);
}

const QuantisedColumns* PackedWeights::quantised(const void* weights) const {
  const auto range = range_of(weights);
  if (range == ranges_.end()) return nullptr;
  const auto found = range->second.quantised.find(static_cast<Address>(weights));
  return found == range->second.quantised.end() ? nullptr : &found->second;
}

bool PackedWeights::is_let_go(const Range& range, Address weights) {
  const auto after = range.let_go.upper_bound(weights);
  return after != range.let_go.begin() && weights < std::prev(after)->second;
}

void PackedWeights::remove(const void* begin) {
  const auto range = ranges_.find(static_cast<Address>(begin));
  if (--range->second.users == 0) ranges_.erase(range);
}

PackedWeights::Ranges::const_iterator PackedWeights::range_of(const void* weights) const {
  const auto* address = static_cast<Address>(weights);
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return ranges_.end();
  const auto range = std::prev(after);
  return address < range->second.end ? range : ranges_.end();
}

bool PackedWeights::covers(const void* weights) const {
  return range_of(weights) != ranges_.end();
}

const void* PackedWeights::packed(const void* weights, const dnnl::memory::desc& plain,
                                  const dnnl::memory::desc& layout, dnnl::stream& stream) {
  return copy_of(weights, weights, plain, layout, stream);
}

bool PackedWeights::pack(const void* weights, const void* values, const dnnl::memory::desc& plain,
                         const dnnl::memory::desc& layout, dnnl::stream& stream) {
  if (layout == plain) return false;
  copy_of(weights, values, plain, layout, stream);
  return true;
}

const void* PackedWeights::copy_of(const void* weights, const void* values,
                                   const dnnl::memory::desc& plain,
                                   const dnnl::memory::desc& layout, dnnl::stream& stream) {
  const auto* address = static_cast<Address>(weights);
  Range& range = ranges_.at(range_of(weights)->first);
  const bool is_copy_alone = is_let_go(range, address);
  if (layout == plain && !is_copy_alone) return weights;
  std::vector<Copy>& copies = range.copies[address];
  auto copy = std::find_if(copies.begin(), copies.end(), [&](const Copy& known) {
    return known.plain == plain && known.layout == layout;
  });
  if (copy == copies.end()) {
    copies.push_back({plain, layout, buffer_for(layout)});
    copy = std::prev(copies.end());
  }
  if (!copy->current) {
    // A product with another number of rows may want another layout: it comes from the first copy.
    ONEBIT_INVARIANT(!is_copy_alone || copies.front().plain == plain);
    dnnl::memory from =
        is_copy_alone
            ? dnnl::memory(copies.front().layout, stream.get_engine(), copies.front().values.data())
            : dnnl::memory(plain, stream.get_engine(), const_cast<void*>(values));
    dnnl::memory to(layout, stream.get_engine(), copy->values.data());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    copy->current = true;
  }
  return copy->values.data();
}

namespace {

using dnnl::cpu_isa;

// The instruction sets that oneDNN 2.6 names. newer_onednn_instruction_sets() adds the ones of
// later versions.
constexpr OnednnInstructionSet kInstructionSets[] = {
    {cpu_isa::sse41, "sse41"},
    {cpu_isa::avx, "avx"},
    {cpu_isa::avx2, "avx2"},
    {cpu_isa::avx2_vnni, "avx2_vnni", false, true},
    {cpu_isa::avx512_core, "avx512_core"},
    {cpu_isa::avx512_core_vnni, "avx512_core_vnni", false, true},
    {cpu_isa::avx512_core_bf16, "avx512_core_bf16", true, true},
    {cpu_isa::avx512_core_amx, "avx512_core_amx", true, true, true},
};

const OnednnInstructionSet* find_set(std::span<const OnednnInstructionSet> sets, cpu_isa isa) {
  const auto found = std::find_if(
      sets.begin(), sets.end(), [isa](const OnednnInstructionSet& set) { return set.isa == isa; });
  return found == sets.end() ? nullptr : &*found;
}

// The set that oneDNN uses on this processor, or null if it is newer than these lists.
const OnednnInstructionSet* instruction_set_here() {
  const cpu_isa isa = dnnl::get_effective_cpu_isa();
  const OnednnInstructionSet* old = find_set(kInstructionSets, isa);
  return old != nullptr ? old : find_set(newer_onednn_instruction_sets(), isa);
}

bool native_bf16() {
  const OnednnInstructionSet* here = instruction_set_here();
  return here != nullptr && here->multiplies_bf16;
}

}  // namespace

OnednnStream::OnednnStream(int threads)
    : threads_(threads),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(make_onednn_stream(engine_, threads)),
      process_(::getpid()),
      has_native_bf16_(native_bf16()) {}

bool OnednnStream::has_native_int8() {
  const OnednnInstructionSet* here = instruction_set_here();
  return here != nullptr && here->multiplies_int8;
}

PreparedPrimitive OnednnStream::prepare_product(const ProductPlan& product) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (product.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  plan_for_threads(threads_);
  const auto plan = plan_product(engine_, product.source, product.weights, product.bias,
                                 product.destination, attributes);
  PreparedPrimitive prepared;
  prepared.primitive = dnnl::matmul(plan);
  const auto without_memory = [&](const dnnl::memory::desc& desc) {
    return dnnl::memory(desc, engine_, DNNL_MEMORY_NONE);
  };
  prepared.arguments = {{DNNL_ARG_SRC, without_memory(product.source)},
                        {DNNL_ARG_WEIGHTS, without_memory(plan.weights_desc())},
                        {DNNL_ARG_DST, without_memory(product.destination)},
                        {DNNL_ARG_SCRATCHPAD, without_memory(plan.scratchpad_desc())}};
  if (product.bias != nullptr) {
    prepared.arguments.emplace(DNNL_ARG_BIAS, without_memory(*product.bias));
  }
  prepared.scratchpad_bytes = static_cast<int64_t>(plan.scratchpad_desc().get_size());
  return prepared;
}

PreparedPrimitive* OnednnStream::find_primitive(const PrimitiveKey& key) {
  // A primitive starts the threads that it was planned for. A child of fork(), for example a worker
  // of a data loader, has none of them and would wait for ever.
  if (const pid_t here = ::getpid(); here != process_) {
    primitives_.clear();
    process_ = here;
  }
  const auto found = primitives_.find(key);
  if (found == primitives_.end()) return nullptr;
  found->second.last_use = ++uses_;
  return &found->second;
}

PreparedPrimitive& OnednnStream::keep_primitive(const PrimitiveKey& key,
                                                PreparedPrimitive primitive) {
  if (primitives_.size() >= kMaxPrimitives) {
    primitives_.erase(std::min_element(
        primitives_.begin(), primitives_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
  }
  log_debug("oneDNN: created primitive {} of at most {}", primitives_.size() + 1, kMaxPrimitives);
  primitive.last_use = ++uses_;
  return primitives_.insert_or_assign(key, std::move(primitive)).first->second;
}

const char* OnednnStream::instruction_set() {
  const OnednnInstructionSet* here = instruction_set_here();
  return here != nullptr ? here->name : "unknown";
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

bool onednn_uses_tiles() {
  const OnednnInstructionSet* here = instruction_set_here();
  return here != nullptr && here->has_tiles;
}

std::string onednn_instruction_set() {
  return OnednnStream::instruction_set();
}

}  // namespace onebit
