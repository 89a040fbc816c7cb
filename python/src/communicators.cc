// Groups of ranks.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <span>
#include <vector>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/tcp_communicator.h"
#include "python/src/interruption.h"
#include "python/src/module.h"

namespace onebit::python {
namespace {

using namespace nb::literals;

std::vector<Ranks> ranks_as_threads(int count) {
  constexpr int kMost = 1024;
  require(count >= 1 && count <= kMost, "count must be between 1 and {}, not {}", kMost, count);
  std::vector<Ranks> ranks;
  for (auto& communicator : comm::make_thread_world(count)) {
    ranks.push_back({std::move(communicator)});
  }
  return ranks;
}

// Returns when every rank has come.
Ranks ranks_over_tcp(int rank, int size, const std::string& host, int port,
                     const std::string& token, const std::string& interfaces, bool on_one_machine) {
  return {transport::make_tcp_world({.rank = rank,
                                     .world_size = size,
                                     .on_one_machine = on_one_machine,
                                     .master = host,
                                     .port = port,
                                     .interfaces = interfaces,
                                     .token = token,
                                     .check = &check_signals})};
}

using Bytes = nb::ndarray<nb::c_contig, nb::device::cpu>;

// Overwrites the array with that of rank `root`.
void broadcast(Ranks& ranks, Bytes array, int root) {
  require(root >= 0 && root < ranks.communicator->world_size(), "there is no rank {} of {}", root,
          ranks.communicator->world_size());
  const std::span<std::byte> bytes(static_cast<std::byte*>(array.data()), array.nbytes());
  wait_for_ranks(ranks.communicator,
                 [&] { comm::broadcast_in_chunks(*ranks.communicator, bytes, root); });
}

using Numbers = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Replaces every number by the largest of all ranks, or by NaN if one has that.
void maximum(Ranks& ranks, Numbers numbers) {
  const std::span<double> values(numbers.data(), numbers.shape(0));
  wait_for_ranks(ranks.communicator,
                 [&] { ranks.communicator->all_reduce(values, comm::Reduction::kMax); });
}

// The ranks of a node, in their order, exchange exact means (docs/optimizers.md).
void set_ranks_per_node(Ranks& ranks, int ranks_per_node) {
  const int size = ranks.communicator->world_size();
  require(ranks_per_node >= 1 && size % ranks_per_node == 0,
          "ranks_per_node is {}: it must be at least 1 and divide the {} ranks", ranks_per_node,
          size);
  ranks.communicator->set_nodes(comm::Nodes::groups(size, ranks_per_node));
}

}  // namespace

void bind_communicators(nb::module_& module) {
  nb::class_<Ranks>(module, "Ranks")
      .def_prop_ro("rank", [](const Ranks& ranks) { return ranks.communicator->rank(); })
      .def_prop_ro("size", [](const Ranks& ranks) { return ranks.communicator->world_size(); })
      .def_prop_ro("transport",
                   [](const Ranks& ranks) { return std::string(ranks.communicator->transport()); })
      .def("barrier",
           [](Ranks& ranks) {
             wait_for_ranks(ranks.communicator, [&] { ranks.communicator->barrier(); });
           })
      .def("broadcast", &broadcast, "array"_a.noconvert(), "root"_a)
      .def("maximum", &maximum, "numbers"_a.noconvert())
      .def("set_ranks_per_node", &set_ranks_per_node, "ranks_per_node"_a)
      .def(
          "abort",
          [](Ranks& ranks, const std::string& message) { ranks.communicator->abort(message); },
          "message"_a, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "leave", [](Ranks& ranks) { ranks.communicator->leave(); },
          nb::call_guard<nb::gil_scoped_release>());
  module.def("one_rank", [] { return Ranks{comm::make_single_rank()}; });
  module.def("ranks_as_threads", &ranks_as_threads, "count"_a);
  module.def("ranks_over_tcp", &ranks_over_tcp, "rank"_a, "size"_a, "host"_a, "port"_a, "token"_a,
             "interfaces"_a, "on_one_machine"_a, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace onebit::python
