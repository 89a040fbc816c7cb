// The module onebit._core: onebit's engine, transports and models for Python.
#include "python/src/module.h"

#include <nanobind/stl/string.h>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::python {
namespace {

// Lines of the log go to a Python function, from any thread.
void set_log(nb::object function) {
  if (function.is_none()) {
    set_log_sink({});
    return;
  }
  // The function is never destroyed: a thread may log while the interpreter ends.
  auto* target = new nb::object(std::move(function));
  set_log_sink([target](LogLevel level, std::string_view text) {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire gil;
    try {
      (*target)(static_cast<int>(level), std::string(text));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a log line of onebit");
    }
  });
}

void bind_errors(nb::module_& module) {
  const auto error = nb::exception<Error>(module, "Error", PyExc_RuntimeError);
  nb::exception<comm::PeerError>(module, "PeerError", error.ptr());
  nb::exception<comm::NetworkError>(module, "NetworkError", error.ptr());
  nb::exception<InternalError>(module, "InternalError", PyExc_RuntimeError);
}

}  // namespace
}  // namespace onebit::python

NB_MODULE(_core, module) {
  using namespace onebit::python;
  using namespace nanobind::literals;
  onebit::throw_on_broken_invariants();
  // A model that lives as long as the interpreter keeps the engine whose memory it is in.
  nanobind::set_leak_warnings(false);
  bind_errors(module);
  bind_communicators(module);
  bind_engine(module);
  bind_models(module);
  module.def("set_log", &set_log, "function"_a.none());
  module.def(
      "set_log_level",
      [](int level) { onebit::set_log_level(static_cast<onebit::LogLevel>(level)); }, "level"_a);
  module.def("available_threads", &onebit::available_threads);
}
