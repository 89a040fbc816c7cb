"""Faults that the tests of the CUDA backend must detect: the code removed, and the tests to
fail."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    find: str
    replace: str
    program: str        # test_<program> of the build
    tests: str          # a GoogleTest filter
    number: int = 1     # which of several occurrences
    of_several: bool = False
    compiled: tuple = ()  # the sources to compile if the file is a header
    schedules: tuple = ()


OPS, KERNELS = "onebit/math/ops/", "onebit/math/kernels/"
ATTENTION_FLOOR, UPDATES = "onebit/math/attention/", "onebit/math/updates/"
ATTENTION = "*AttentionTest.*/cuda_bf16"
PLAIN_ATTENTION = "*AttentionTest.ForwardAndBackward/cuda_f32"
FORWARD, BACKWARD = ATTENTION_FLOOR + "attention_cuda.cu", ATTENTION_FLOOR + "attention_backward_cuda.cu"
PLAIN = ATTENTION_FLOOR + "attention_plain_cuda.cu"
BOTH = (FORWARD, BACKWARD)
PRODUCT = "*LinearTest.ForwardAndBackward/cuda_f32"
NORM = (OPS + "layer_norm_cuda.cu",)


def ops(name, file, find, replace, tests, **more):
    program = "attention" if file.startswith(ATTENTION_FLOOR) else "ops"
    return Fault(name, file, find, replace, program, tests, **more)


def updates(name, file, find, replace, tests, **more):
    return Fault(name, file, find, replace, "updates", tests, **more)


def of(number):
    return {"number": number, "of_several": True}


WAIT = '  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");\n'
OWN_DEVICE = '  check_cuda(cudaSetDevice(device_index), "cudaSetDevice");\n'


def memory(name, line, number, program, tests):
    return Fault(name, "onebit/math/device/memory_cuda.cc", line, "", program, tests, **of(number))


BARRIER = "    __syncthreads();\n"
FREED = "      if (Products::kOwnTileIsFreed) __syncthreads();\n"
WARPGROUP = ATTENTION_FLOOR + "attention_warpgroup_products_cuda.h"
COLUMN_SUMS = ATTENTION_FLOOR + "attention_place_cuda.h"

FAULTS = [
    # Attention on tensor cores: barriers, asynchronous copies, bounds.
    ops("attention_barrier", FORWARD, BARRIER, "", ATTENTION),
    ops("attention_copies_wait", FORWARD, "    wait_for_copies();\n", "", ATTENTION),
    ops("attention_copies_group", FORWARD, "  end_copy_group();\n", "", ATTENTION),
    ops("attention_one_slot", FORWARD, "slot = 1 - slot) {", "slot = 0) {", ATTENTION),
    ops("attention_keys_bound", FORWARD, "const bool exists = j * 8 + lane % 4 * 2 + i % 2 < keys;",
        "const bool exists = true;", ATTENTION),
    ops("attention_log_sum_bound", FORWARD, "    if (query >= at.length) continue;\n", "", ATTENTION),
    ops("attention_rows_bound", ATTENTION_FLOOR + "attention_tile_cuda.h", "    if (row < count) {",
        "    if (true) {", ATTENTION, compiled=BOTH),
    ops("attention_rows_bound_8", ATTENTION_FLOOR + "attention_tile_cuda.h", "    if (row + 8 < count) {",
        "    if (true) {", ATTENTION, compiled=BOTH),
    ops("attention_load_bound", ATTENTION_FLOOR + "attention_tile_cuda.h", "const bool exists = row < count;",
        "const bool exists = true;", ATTENTION, compiled=BOTH),
    ops("attention_mask_fence_after", ATTENTION_FLOOR + "attention_place_cuda.h",
        "at.lane % 2 * kWarp);\n    __syncwarp();\n", "at.lane % 2 * kWarp);\n", ATTENTION,
        compiled=BOTH),
    ops("attention_queries_barrier", BACKWARD, BARRIER + "    if (key == first)",
        "    if (key == first)",
        ATTENTION),
    ops("attention_queries_second_barrier", BACKWARD, FREED, "", ATTENTION, **of(1)),
    ops("attention_queries_wait", BACKWARD, "    wait_for_copies();\n", "", ATTENTION, **of(1)),
    ops("attention_key_barrier", BACKWARD, BARRIER + "    if (query == first)",
        "    if (query == first)",
        ATTENTION),
    ops("attention_key_second_barrier", BACKWARD, FREED, "", ATTENTION, **of(2)),
    ops("attention_key_wait", BACKWARD, "    wait_for_copies();\n", "", ATTENTION, **of(2)),
    ops("attention_kept_bound", ATTENTION_FLOOR + "attention_place_cuda.h",
        "at.lane >= 16 || at.begin + row >= at.length", "at.lane >= 16", ATTENTION, compiled=BOTH),
    ops("attention_kept_copies", BACKWARD, "    start_small_copy(shared_address(&shared.kept[slot]."
        "word[row]), kept, exists);\n", "", ATTENTION),
    ops("attention_row_sums_copies", BACKWARD, "                     i < count);\n",
        "                     false);\n", ATTENTION),
    # Attention's products of warpgroups.
    ops("warpgroup_copies_shown", FORWARD, "    Products::publish_copies();\n", "", ATTENTION),
    ops("warpgroup_registers_shown", FORWARD, "    Products::begin_products();\n", "", ATTENTION,
        **of(1)),
    ops("warpgroup_group", FORWARD, "    Products::end_products();\n", "", ATTENTION, **of(2)),
    ops("warpgroup_scores_wait", FORWARD, "    Products::finish(score);\n", "", ATTENTION),
    ops("warpgroup_context_wait", FORWARD, "    Products::finish(context);\n", "", ATTENTION),
    ops("warpgroup_queries_copies_shown", BACKWARD, "    Products::publish_copies();\n", "",
        ATTENTION, **of(1)),
    ops("warpgroup_queries_wait", BACKWARD, "    Products::finish(sum);\n", "", ATTENTION),
    ops("warpgroup_queries_registers_shown", BACKWARD, "      Products::begin_products();\n", "",
        ATTENTION, **of(1)),
    ops("warpgroup_queries_group", BACKWARD, "      Products::end_products();\n", "", ATTENTION,
        **of(1)),
    ops("warpgroup_keys_registers_shown", BACKWARD, "      Products::begin_products();\n", "",
        ATTENTION, **of(2)),
    ops("warpgroup_keys_group", BACKWARD, "      Products::end_products();\n", "", ATTENTION,
        **of(2)),
    ops("warpgroup_copies_shown_late", FORWARD, "    Products::publish_copies();\n" + BARRIER,
        BARRIER + "    Products::publish_copies();\n", ATTENTION),
    ops("warpgroup_keys_copies_shown", BACKWARD, "    Products::publish_copies();\n", "",
        ATTENTION, **of(2)),
    ops("warpgroup_keys_scores_wait", BACKWARD, "      Products::finish(weight, gradient);\n", "",
        ATTENTION),
    ops("warpgroup_keys_wait", BACKWARD, "      Products::finish(grad_value, grad_key);\n", "",
        ATTENTION),
    ops("warpgroup_swizzle", WARPGROUP, "? row % 8", "? 0", ATTENTION, compiled=BOTH),
    ops("warpgroup_swizzle_32", WARPGROUP, ": row / 2 % 4", ": row % 4", ATTENTION, compiled=BOTH),
    ops("warpgroup_half_of_128", WARPGROUP, "? column / kColumns : 0", "? 0 : 0", ATTENTION,
        compiled=BOTH),
    ops("warpgroup_sum_of_128", WARPGROUP, "(sum[j * kOfHalf])", "(sum[0])", ATTENTION,
        compiled=BOTH),
    ops("warpgroup_own_tile", WARPGROUP, "return kTileSlots + group;", "return kTileSlots;",
        ATTENTION, compiled=BOTH),
    # The sums of columns of attention's gradients.
    ops("column_sums_first_barrier", COLUMN_SUMS, BARRIER, "", ATTENTION, compiled=(BACKWARD,),
        **of(1)),
    ops("column_sums_second_barrier", COLUMN_SUMS, BARRIER, "", ATTENTION, compiled=(BACKWARD,),
        **of(2)),
    ops("column_sums_third_barrier", COLUMN_SUMS, BARRIER, "", ATTENTION, compiled=(BACKWARD,),
        **of(3)),
    ops("column_sums_bound", COLUMN_SUMS, "has_second = first + 8 < at.length",
        "has_second = true", ATTENTION, compiled=(BACKWARD,)),
    ops("column_sums_of_no_rows", BACKWARD, "return write_no_sums<Products::kHead>(a, 0, at.head);", "return;",
        ATTENTION),
    ops("plain_attention_fence", PLAIN, "  __syncwarp();\n", "", PLAIN_ATTENTION, **of(1)),
    ops("plain_attention_queries_fence", PLAIN, "  __syncwarp();\n", "", PLAIN_ATTENTION, **of(2)),
    ops("plain_attention_keys_fence", PLAIN, "  __syncwarp();\n", "", PLAIN_ATTENTION, **of(3)),
    ops("plain_attention_bound", PLAIN, "const bool exists = seen.has(key);",
        "const bool exists = true;", PLAIN_ATTENTION),
    # Sums over blocks, and rows whose length is no multiple of eight.
    updates("block_sums_first_barrier", KERNELS + "kernel_cuda.h",
        "  __syncthreads();  // the previous sums have been read\n", "", "*OnebitSketch*uda*",
        compiled=(UPDATES + "onebit_adam_update_cuda.cu",)),
    ops("block_sums_turn", KERNELS + "norm_cuda.h", "static_cast<unsigned>(row) % 2", "0u",
        "*LayerNorm*uda*", compiled=NORM),
    ops("block_sums_second_barrier", KERNELS + "kernel_cuda.h",
        "partial[threadIdx.x / kWarp] = mine;\n  __syncthreads();\n",
        "partial[threadIdx.x / kWarp] = mine;\n", "*LayerNorm*uda*", compiled=NORM),
    ops("load_bound", KERNELS + "eight_cuda.h",
        "    if (i < count) result.lane[i] = widen(from[i]);", "    result.lane[i] = widen(from[i]);",
        "*LayerNorm*uda*", compiled=NORM),
    ops("store_bound", KERNELS + "eight_cuda.h",
        "    if (i < count) to[i] = narrow<T>(from.lane[i]);", "    to[i] = narrow<T>(from.lane[i]);",
        "*LayerNorm*uda*", compiled=NORM),
    ops("norm_bound", KERNELS + "norm_cuda.h", "i < count ? row.lane[i] - mean : 0.0f",
        "row.lane[i] - mean", "*LayerNorm*uda*", compiled=NORM),
    ops("column_partials_barrier", KERNELS + "column_partials_cuda.cu",
        "  __syncthreads();\n", "", "*LayerNorm*uda*:*ColumnSum*uda*"),
    ops("column_partials_bound", KERNELS + "column_partials_cuda.cu",
        "if (threadIdx.y != 0 || column >= columns) return;", "if (threadIdx.y != 0) return;",
        "*LayerNorm*uda*:*ColumnSum*uda*"),
    ops("reduce_barrier", OPS + "reduce_cuda.cu", "  __syncthreads();\n", "", "*ReduceTest*uda*"),
    ops("cross_entropy_largest_barrier", OPS + "losses_cuda.cu",
        "partial[threadIdx.x / kWarp] = mine;\n  __syncthreads();\n",
        "partial[threadIdx.x / kWarp] = mine;\n", "*CrossEntropyTest*uda*"),
    ops("cross_entropy_target_barrier", OPS + "losses_cuda.cu",
        "  __syncthreads();  // the target's logit has been read\n", "", "*CrossEntropyTest*uda*"),
    ops("cross_entropy_bound", OPS + "losses_cuda.cu",
        "i < kEight && at + i < a.classes; ++i) {\n      best", "i < kEight; ++i) {\n      best",
        "*CrossEntropyTest*uda*"),
    ops("span_cross_entropy_fence", OPS + "losses_cuda.cu",
        "  __syncwarp();  // the target's logit has been read\n", "", "*SpanCrossEntropy*uda*"),
    ops("product_first_barrier", OPS + "linear_cuda.cu", BARRIER, "", PRODUCT, **of(1)),
    ops("product_second_barrier", OPS + "linear_cuda.cu", BARRIER, "", PRODUCT, **of(2)),
    ops("product_load_bound", OPS + "linear_cuda.cu", "row < m && p + x < end ?", "row < m ?",
        PRODUCT),
    ops("product_last_part", OPS + "linear_cuda.cu", "end < k ? end : k", "end",
        "*LinearTest.WeightGradientOfFewOutputs/cuda_f32"),
    ops("product_parts_overwrite", OPS + "linear_cuda.cu", "if (!p.accumulate) {", "if (false) {",
        "*LinearTest.WeightGradientOfFewOutputs/cuda_f32"),
    ops("product_store_bound", OPS + "linear_cuda.cu",
        "  if (row >= m || column >= n) return;\n", "", PRODUCT),
    ops("fill_zero_bound", OPS + "elementwise_cuda.cu", "at < range.end;", "at <= range.end;",
        "*ElementwiseTest*uda*"),
    ops("fill_zero_rest", OPS + "elementwise_cuda.cu", "  fill_listed();\n}", "}",
        "*ElementwiseTest*uda*"),
    ops("dropout_other_half", KERNELS + "eight_cuda.h", "both >> (8 * (column_block % 2))", "both",
        "*DropoutTest*uda*", compiled=(OPS + "elementwise_cuda.cu",)),
    ops("gather_bound", OPS + "rows_cuda.cu", "i < words; i += kThreads",
        "i < kThreads; i += kThreads", "*RowsTest*uda*"),
    ops("sequence_mean_bound", OPS + "rows_cuda.cu",
        "row < end; ++row) {\n      const Eight", "row <= end; ++row) {\n      const Eight",
        "*SequenceMeanTest*uda*"),
    ops("sequence_mean_gradient_bound", OPS + "rows_cuda.cu",
        "row < end; ++row) {\n      store_eight", "row <= end; ++row) {\n      store_eight",
        "*SequenceMeanTest*uda*"),
    ops("embedding_bound", OPS + "embedding_cuda.cu",
        "  const int64_t hidden = tables.hidden, count = hidden - column;\n  Eight values;",
        "  const int64_t hidden = tables.hidden, count = kEight;\n  Eight values;",
        "*EmbeddingTest*uda*"),
    # The embedding gradient's lists.
    ops("scatter_counts_read_barrier", OPS + "embedding_cuda.cu",
        "      __syncthreads();  // the counts of the previous round have been read\n", "",
        "*EmbeddingTest*uda*"),
    ops("scatter_counts_barrier", OPS + "embedding_cuda.cu",
        "counts[warp] = __popc(ballot);\n      __syncthreads();\n",
        "counts[warp] = __popc(ballot);\n", "*EmbeddingTest*uda*"),
    ops("scatter_matches_barrier", OPS + "embedding_cuda.cu",
        "    }\n    __syncthreads();\n    for (int slot", "    }\n    for (int slot",
        "*EmbeddingTest*uda*"),
    ops("scatter_listed_barrier", OPS + "embedding_cuda.cu",
        "      __syncthreads();\n      if (listed > 0)", "      if (listed > 0)",
        "*EmbeddingTest*uda*"),
    ops("scatter_list_read_barrier", OPS + "embedding_cuda.cu",
        "first_id + slot);\n      __syncthreads();\n", "first_id + slot);\n", "*EmbeddingTest*uda*"),
    ops("scatter_rows_bound", OPS + "embedding_cuda.cu",
        "row < call.rows ? call.ids[row] - first_id : -1", "call.ids[row] - first_id",
        "*EmbeddingTest*uda*"),
    # Optimizers and codecs.
    updates("onebit_step_bound", UPDATES + "onebit_adam_update_cuda.cu",
        "  if (at >= a.elements) return;\n", "", "*OnebitStep*uda*"),
    updates("onebit_normalize_bound", UPDATES + "onebit_adam_update_cuda.cu",
            "const bool here = at < a.end;", "const bool here = true;", "*OnebitNormalize*uda*"),
    updates("lamb_bound", UPDATES + "lamb_update_cuda.cu", "count = tensor.end - at;",
        "count = kEight;", "*LambUpdate*uda*", **of(1)),
    Fault("codec_sums_bound", "onebit/exchange/compress/sign_codec_cuda.cu",
          "element < sink_.elements && (sink_.still == nullptr || !bit_at(sink_.still, element));",
          "sink_.still == nullptr || !bit_at(sink_.still, element);", "compress",
          "*SignCodec*OnCuda*"),
    Fault("codec_whole_bound", "onebit/exchange/compress/sign_codec_cuda.cu",
          "has_words && (block + 1) * kBlockElements <= sink.elements", "has_words", "compress",
          "*SignCodec*OnCuda*"),
    Fault("codec_residual_bound", "onebit/exchange/compress/sign_codec_cuda.cu",
          "    if (kWhole || element < sink.elements) sink.residual[element] = left;",
          "    sink.residual[element] = left;", "compress", "*SignCodec*OnCuda*"),
    Fault("codec_decode_bound", "onebit/exchange/compress/sign_codec_cuda.cu",
          "    if (element >= a.elements) break;\n", "", "compress", "*SignCodec*OnCuda*"),
    Fault("dense_codec_bound", "onebit/exchange/comm/dense_exchange_cuda.cu", "  if (i < count) to[i] =",
          "  to[i] =", "comm", "CudaDenseExchange*"),
    Fault("dense_average_bound", "onebit/exchange/comm/dense_exchange_cuda.cu",
          "  if (i >= elements) return;\n", "", "comm", "CudaDenseExchange*"),
    ops("ragged_rows_compared", KERNELS + "cublas_product.cc", "    counts.push_back(count);\n", "",
        "*RowsThatAreNoWholeTiles*/cuda_f32"),
    # Streams and events.
    memory("fill_zero_wait", WAIT, 1, "comm", "NcclContract*"),
    memory("copy_wait", WAIT, 2, "comm", "NcclContract*"),
    memory("fill_zero_device", OWN_DEVICE, 2, "device", "CudaDevice.CopiesAndFills*"),
    memory("copy_device", OWN_DEVICE, 3, "device", "CudaDevice.CopiesAndFills*"),
    Fault("pointer_device", "onebit/math/device/memory_cuda.cc",
          "if (cudaSetDevice(device_index) != cudaSuccess ||\n      ", "if (device_index < 0 || ",
          "emulated_backend", "EmulatedBackendDeathTest*"),
    ops("one_row_sampled", KERNELS + "cublas_product_sample_cuda.cu", "half > 0 && p >= half", "p >= half",
        "*FewRowsOfALargeMatrix/cuda_f32"),
    Fault("copy_beside_wait", "onebit/math/device/memory_cuda.cc",
          '  check_cuda(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");\n', "",
          "device", "*uda*"),
    ops("download_wait", "onebit/math/device/cuda_stream.cc", "  synchronize();\n", "",
        "*ReduceTest*uda*"),
    Fault("milestone_wait", "onebit/math/device/cuda_stream.cc",
          "  delay(stream_, event);\n", "  static_cast<void>(event);\n", "device", "*uda*"),
    Fault("caller_waits", "onebit/math/device/cuda_stream.cc",
          "  delay(static_cast<cudaStream_t>(stream), record());\n", "  static_cast<void>(stream);\n",
          "emulated_backend", "*AnotherLibrarys*"),
    Fault("caller_is_awaited", "onebit/math/device/cuda_stream.cc",
          "  wait_for(record_on(static_cast<cudaStream_t>(stream)));\n", "  static_cast<void>(stream);\n",
          "emulated_backend", "*AnotherLibrarys*"),
    Fault("event_wait", "onebit/math/device/cuda_stream.cc",
          "  check_cuda(cudaEventSynchronize(static_cast<cudaEvent_t>(event.get())), "
          '"cudaEventSynchronize");\n', "  static_cast<void>(event);\n", "device", "*uda*"),
    Fault("batch_model_wait", "onebit/training/training/device_batch.cc",
          "  context.wait_for(copies_->milestone());\n", "", "training", "*DeviceBatch*uda*"),
    Fault("batch_readers_wait", "onebit/training/training/device_batch.cc",
          "  copies_->wait_for(slot.read);\n", "", "training", "*DeviceBatch*uda*"),
    Fault("batch_host_wait", "onebit/training/training/device_batch.cc",
          "  slots_[turn_].host.wait();\n", "", "training", "*DeviceBatch*uda*"),
    Fault("bucket_pack_wait", "onebit/exchange/comm/bucket_pipeline.cc",
          "    context.synchronize();  // transports are not stream-ordered\n", "", "comm",
          "Cuda*Exchange*"),
    Fault("bucket_reduce_wait", "onebit/exchange/comm/bucket_pipeline.cc",
          "    pass(stations_.reduce, context, slot.bucket);\n    context.synchronize();\n",
          "    pass(stations_.reduce, context, slot.bucket);\n", "comm", "Cuda*Exchange*"),
    Fault("gradients_wait", "onebit/exchange/comm/overlapped_exchange.cc",
          "      context.wait_for(made);\n", "", "comm", "Cuda*Exchange*"),
    Fault("exchange_end_wait", "onebit/exchange/comm/overlapped_exchange.cc",
          "      own.synchronize();\n", "", "comm", "Cuda*Exchange*"),
    Fault("nccl_group_wait", "onebit/exchange/transport/nccl_communicator.cc",
          "    link_->finish(group.end(), \"ncclGroupEnd\");\n", "    group.end();\n", "comm",
          "NcclContract*"),
    Fault("nccl_request_wait", "onebit/exchange/transport/nccl_communicator.cc",
          "    if (reached == cudaErrorNotReady) {", "    if (false) {", "comm", "NcclContract*"),
]
