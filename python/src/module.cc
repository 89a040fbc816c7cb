// The module onebit._core: onebit's engine, transports and models for Python.
#include "python/src/module.h"

#include <nanobind/stl/string.h>

#include <exception>
#include <system_error>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/training/training/interruption.h"

namespace onebit::python {
namespace {

// Lines of the log go to a Python function, from any thread.
void set_log(nb::object function) {
  if (function.is_none()) {
    const nb::gil_scoped_release release;  // a thread that logs may wait for the lock
    set_log_sink({});
    return;
  }
  // The function is never destroyed: a thread may log while the interpreter ends.
  auto* target = new nb::object(std::move(function));
  const nb::gil_scoped_release release;
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
  // What the system refuses, for example a name that is too long, is the user's to mend, too.
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const std::system_error& failure) {
          PyErr_SetString(static_cast<PyObject*>(type), failure_text(failure).c_str());
        }
      },
      error.ptr());
}

}  // namespace
}  // namespace onebit::python

NB_MODULE(_core, module) {
  using namespace onebit::python;
  using namespace nanobind::literals;
  onebit::throw_on_broken_invariants();
  onebit::training::give_signals_a_stack();  // the interpreter's handlers have SA_ONSTACK
  // A model that lives as long as the interpreter keeps the engine whose memory it is in.
  nanobind::set_leak_warnings(false);
  module.attr("version") = ONEBIT_VERSION;
  bind_errors(module);
  bind_communicators(module);
  bind_engine(module);
  bind_models(module);
  bind_recipes(module);
  bind_tokenizer(module);
  bind_data(module);
  bind_tools(module);
  bind_training(module);
  module.def("set_log", &set_log, "function"_a.none());
  module.def(
      "set_log_level",
      [](int level) {
        constexpr int kMost = static_cast<int>(onebit::LogLevel::kError);
        onebit::require(level >= 0 && level <= kMost, "level must be between 0 and {}, not {}",
                        kMost, level);
        onebit::set_log_level(static_cast<onebit::LogLevel>(level));
      },
      "level"_a);
  module.def("available_threads", &onebit::available_threads);
}
