// The parts of the module onebit._core. Every function that computes or waits releases the
// interpreter's lock; every array is used in place, and one of another type, order or device is
// refused instead of copied, because results written into a copy would be lost.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::python {

namespace nb = nanobind;

// One rank's end of a group of ranks.
struct Ranks {
  std::shared_ptr<comm::Communicator> communicator;
};

void bind_communicators(nb::module_& module);
void bind_data(nb::module_& module);
void bind_engine(nb::module_& module);
void bind_models(nb::module_& module);
void bind_recipes(nb::module_& module);
void bind_tokenizer(nb::module_& module);
void bind_tools(nb::module_& module);
void bind_training(nb::module_& module);

}  // namespace onebit::python
