#include "onebit/data/samples/hdf5_reader.h"
#include "onebit/ground/base/error.h"

namespace onebit::samples {

std::unique_ptr<SampleReader> open_hdf5(const Path& path) {
  fail(
      "{}: this onebit was built without HDF5: install libhdf5-dev, configure and build again "
      "(`cmake "
      "--preset release`)",
      path.string());
}

}  // namespace onebit::samples
