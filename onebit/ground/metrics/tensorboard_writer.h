// An event file for TensorBoard that grows during the run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "onebit/ground/metrics/append_file.h"
#include "onebit/ground/metrics/jsonl_writer.h"
#include "onebit/ground/metrics/tensorboard_event.h"

namespace onebit::metrics {

class TensorBoardWriter {
 public:
  // Creates `folder` if needed and in it events.out.tfevents.<seconds>.<host>.<process>. With
  // `last_step` other than kNoStep, the run continues after that step, and TensorBoard drops later
  // events in earlier files of the folder.
  TensorBoardWriter(const Path& folder, int64_t last_step);

  // The event has reached the operating system on return.
  void scalars(int64_t step, std::span<const Scalar> scalars);

  const Path& path() const { return file_->path(); }

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace onebit::metrics
