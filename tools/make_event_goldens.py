#!/usr/bin/env python3
"""Makes and checks TensorBoard event files with the real library (pip install tensorboard).

  make_event_goldens.py               writes tests/metrics/golden/events.tfevents
  make_event_goldens.py check FOLDER  opens a run's folder as TensorBoard does and lists its series
"""
import struct
import sys
from pathlib import Path

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.compat.proto.types_pb2 import DT_STRING

GOLDEN = Path(__file__).resolve().parents[1] / "tests/metrics/golden"


def record(event):
    data = event.SerializeToString(deterministic=True)
    length = struct.pack("<Q", len(data))
    return (length + struct.pack("<I", masked_crc32c(length)) + data
            + struct.pack("<I", masked_crc32c(data)))


def make():
    at = {"wall_time": 1234567890.25, "step": 300}
    value = summary_pb2.Summary.Value
    text = value(tag="recipe", metadata=summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text")))
    text.tensor.dtype = DT_STRING
    text.tensor.tensor_shape.dim.add(size=1)
    text.tensor.string_val.append(("**bold** naïve " + "x" * 200).encode())
    histogram = summary_pb2.HistogramProto(
        min=-1, max=2, num=3, sum=1.5, sum_squares=5.25, bucket_limit=[-1, 0.5, 2], bucket=[0, 2, 1])
    scalars = [value(tag="loss/mlm", simple_value=6.5),
               value(tag="learning_rate", simple_value=1e-4),
               value(tag="none", simple_value=float("nan"))]
    events = [
        event_pb2.Event(wall_time=at["wall_time"], file_version="brain.Event:2"),
        event_pb2.Event(session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START), **at),
        event_pb2.Event(summary=summary_pb2.Summary(value=scalars), **at),
        event_pb2.Event(summary=summary_pb2.Summary(value=[text]), **at),
        event_pb2.Event(summary=summary_pb2.Summary(
            value=[value(tag="weights", histo=histogram)]), **at),
    ]
    GOLDEN.mkdir(parents=True, exist_ok=True)
    (GOLDEN / "events.tfevents").write_bytes(b"".join(record(event) for event in events))


def check(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    events = EventAccumulator(folder)
    events.Reload()
    tags = events.Tags()
    for tag in tags["scalars"]:
        series = events.Scalars(tag)
        steps = [point.step for point in series]
        if steps != sorted(set(steps)):
            sys.exit(f"{folder}: {tag}: steps are not rising: {steps}")
        print(f"{tag}: {len(series)} points, steps {steps[0]} to {steps[-1]}, "
              f"last {series[-1].value:g}")
    for tag in tags["tensors"]:
        print(f"{tag}: text of {len(events.Tensors(tag)[-1].tensor_proto.string_val[0])} bytes")
    for tag in tags["histograms"]:
        print(f"{tag}: {len(events.Histograms(tag))} histograms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"] and len(sys.argv) == 3:
        check(sys.argv[2])
    elif len(sys.argv) == 1:
        make()
    else:
        sys.exit(__doc__)
