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

GOLDEN = Path(__file__).resolve().parents[1] / "tests/metrics/golden"


def record(event):
    data = event.SerializeToString(deterministic=True)
    length = struct.pack("<Q", len(data))
    return (length + struct.pack("<I", masked_crc32c(length)) + data
            + struct.pack("<I", masked_crc32c(data)))


def make():
    at = {"wall_time": 1234567890.25, "step": 300}
    value = summary_pb2.Summary.Value
    scalars = [value(tag="loss/mlm", simple_value=6.5),
               value(tag="learning_rate", simple_value=1e-4),
               value(tag="none", simple_value=float("nan"))]
    events = [
        event_pb2.Event(wall_time=at["wall_time"], file_version="brain.Event:2"),
        event_pb2.Event(session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START), **at),
        event_pb2.Event(summary=summary_pb2.Summary(value=scalars), **at),
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


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"] and len(sys.argv) == 3:
        check(sys.argv[2])
    elif len(sys.argv) == 1:
        make()
    else:
        sys.exit(__doc__)
