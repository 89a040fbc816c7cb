#!/usr/bin/env python3
"""Makes the small checkpoints of tests/formats/golden with the real libraries, in two steps:

  make_checkpoint_goldens.py torch        (pip install torch transformers safetensors)
  make_checkpoint_goldens.py tensorflow   (pip install tensorflow-cpu cramjam), after the first

Writes one tiny BERT in every format and naming. All must be read as the same model.
"""
import json
import struct
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "tests/formats/golden"
LAYERS, HIDDEN = 2, 8


def torch_step():
    import torch
    from collections import OrderedDict
    from transformers import BertConfig, BertForPreTraining, BertTokenizer

    def save(what, path, stream=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(what, path, _use_new_zipfile_serialization=not stream)

    def kinds():
        """Returns tensors of every layout and type that a file can contain."""
        base = torch.arange(12.0).reshape(3, 4)
        return OrderedDict(
            matrix=base, transposed=base.t(), row=base[1], column=base[:, 2], part=base[1:, 1:3],
            half=torch.tensor([0.5, -2.0, 65504.0], dtype=torch.float16),
            bfloat=torch.tensor([1.0, -2.0], dtype=torch.bfloat16),
            double=torch.tensor([1 / 3], dtype=torch.float64), whole=torch.arange(4),
            scalar=torch.tensor(42.0), empty=torch.zeros(0, 3),
            parameter=torch.nn.Parameter(torch.ones(3)), flags=torch.tensor([True, False]),
            rank5=torch.ones(1, 2, 1, 2, 1), number=3)

    torch.manual_seed(1)
    save(kinds(), GOLDEN / "torch/kinds.pt")
    save(kinds(), GOLDEN / "torch/kinds_stream.pt", stream=True)
    torch.serialization.set_crc32_options(False)
    save({"x": torch.ones(2)}, GOLDEN / "torch/no_checksum.pt")
    torch.serialization.set_crc32_options(True)
    save({"x": torch.ones(1).expand(1000000)}, GOLDEN / "torch/expanded.pt")
    save(torch.nn.Linear(2, 2), GOLDEN / "torch/module.pt")
    save({"module": {"x": torch.ones(2)}, "lr": 0.1, "big": 1 << 70, "set": {1}, "step": -3,
          "size": torch.Size([2]), "dtype": torch.float16, "bytes": b"12", "device":
          torch.device("cpu")}, GOLDEN / "torch/other_values.pt")

    config = BertConfig(vocab_size=40, hidden_size=HIDDEN, num_hidden_layers=LAYERS,
                        num_attention_heads=2, intermediate_size=16, max_position_embeddings=12)
    model = BertForPreTraining(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    folder = GOLDEN / "bert"
    model.save_pretrained(folder)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "words.txt").write_text("\n".join(special + [chr(97 + i) for i in range(26)]) + "\n")
    BertTokenizer(str(folder / "words.txt"), do_lower_case=True).save_pretrained(folder)
    (folder / "words.txt").unlink()
    state = model.state_dict()
    save(state, GOLDEN / "bert_zip/pytorch_model.bin")
    old = OrderedDict((name.replace("LayerNorm.weight", "LayerNorm.gamma")
                       .replace("LayerNorm.bias", "LayerNorm.beta"), value)
                      for name, value in state.items())
    save(old, GOLDEN / "bert_stream/pytorch_model.bin", stream=True)
    save({"model_state_dict": {"module." + key: value for key, value in plain(state).items()},
          "epoch": 3}, GOLDEN / "bert_plain.tar", stream=True)
    deepspeed(save, torch, plain(fused(state, torch, pre=False)), "post")
    pre = pre_layer_norm(state, torch)
    from safetensors.torch import save_file
    save_file({key: value.contiguous() for key, value in pre.items()},
              GOLDEN / "bert_pre_layer_norm.safetensors")
    deepspeed(save, torch, plain(fused(pre, torch, pre=True)), "pre")


def plain(state):
    return {name.replace("intermediate.dense.", "intermediate.dense_act.")
            .replace("pooler.dense.", "pooler.dense_act.")
            .replace("transform.dense.", "transform.dense_act."): value
            for name, value in state.items()}


def pre_layer_norm(state, torch):
    renamed = {}
    for name, value in state.items():
        if "decoder" in name:
            continue
        name = name.replace("attention.output.LayerNorm", "PreAttentionLayerNorm")
        if "layer" in name:
            name = name.replace(".output.LayerNorm", ".PostAttentionLayerNorm")
        renamed[name] = value
    renamed["bert.encoder.FinalLayerNorm.weight"] = torch.randn(HIDDEN)
    renamed["bert.encoder.FinalLayerNorm.bias"] = torch.randn(HIDDEN)
    return renamed


def fused(state, torch, pre):
    """Renames to DeepSpeed's transformer layer (csrc/transformer/ds_transformer_cuda.cpp)."""
    result = {name: value for name, value in state.items() if ".layer." not in name}
    for i in range(LAYERS):
        at = f"bert.encoder.layer.{i}."
        before, after = (("PostAttentionLayerNorm", "PreAttentionLayerNorm") if pre else
                         ("attention.output.LayerNorm", "output.LayerNorm"))
        for part, short in (("weight", "w"), ("bias", "b")):
            result[at + "attn_qkv" + short] = torch.cat(
                [state[f"{at}attention.self.{name}.{part}"] for name in ("query", "key", "value")])
            for ours, theirs in (("attention.output.dense", "attn_o"), (before, "attn_n"),
                                 ("intermediate.dense", "inter_"), ("output.dense", "output_"),
                                 (after, "norm_")):
                result[at + theirs + short] = state[f"{at}{ours}.{part}"]
    return result


def deepspeed(save, torch, state, name):
    """Writes a checkpoint with the keys of DeepSpeed's engine, in half precision as in training."""
    tag = f"global_step{LAYERS}"
    half = {key: value.half() for key, value in state.items()}
    save({"module": half, "buffer_names": [], "optimizer": {"state": {0: {
        "step": 2, "exp_avg": torch.zeros(2)}}, "loss_scale": 65536.0},
        "param_shapes": [{key: value.shape for key, value in state.items()}],
        "lr_scheduler": None, "global_steps": 2, "skipped_steps": 0, "dp_world_size": 1,
        "mp_world_size": 1, "ds_config": {"train_batch_size": 8}, "ds_version": "0.14.0"},
        GOLDEN / f"deepspeed_{name}/{tag}/mp_rank_00_model_states.pt")
    (GOLDEN / f"deepspeed_{name}/latest").write_text(tag)


def read_safetensors(path):
    import numpy as np
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[8 + size + item["data_offsets"][0]:
                                     8 + size + item["data_offsets"][1]],
                                np.float32).reshape(item["shape"]) for name, item in header.items()}


def google_names(state):
    for name, value in state.items():
        if name == "cls.predictions.bias":
            yield "cls/predictions/output_bias", value
            continue
        if name.startswith("cls.seq_relationship"):
            yield "cls/seq_relationship/output_" + ("weights" if "weight" in name else "bias"), value
            continue
        name = name.replace(".layer.", ".layer_").replace("LayerNorm.weight", "LayerNorm.gamma")
        name = name.replace("LayerNorm.bias", "LayerNorm.beta").replace("_embeddings.weight",
                                                                        "_embeddings")
        if name.endswith(".weight"):
            name, value = name.replace(".weight", ".kernel"), value.T
        yield name.replace(".", "/"), value


def tensorflow_step():
    import numpy as np
    import tensorflow as tf
    names, values = zip(*google_names(read_safetensors(GOLDEN / "bert/model.safetensors")))
    names, values = list(names), [np.ascontiguousarray(value) for value in values]
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session() as session:
        variables = [tf.compat.v1.get_variable(name, initializer=value)
                     for name, value in zip(names, values)]
        tf.compat.v1.get_variable(names[3] + "/adam_m", initializer=np.ones(3, np.float32))
        tf.compat.v1.get_variable("global_step", initializer=np.int64(7))
        session.run(tf.compat.v1.global_variables_initializer())
        folder = GOLDEN / "bert_tensorflow"
        folder.mkdir(exist_ok=True)
        tf.compat.v1.train.Saver(variables + [tf.compat.v1.global_variables()[-2],
                                              tf.compat.v1.global_variables()[-1]]).save(
            session, str(folder / "bert_model.ckpt"), write_meta_graph=False, write_state=False)
    kinds = {"half": np.array([0.5, -2], np.float16), "double": np.array([1 / 3]),
             "text": np.array([b"a", b"bc"]), "flag": np.array([True]), "whole": np.arange(3),
             "bfloat": tf.constant([1.0, -2.0], tf.bfloat16), "scalar": np.float32(42),
             "empty": np.zeros((0, 3), np.float32), "rank5": np.ones((1, 2, 1, 2, 1), np.float32)}
    folder = GOLDEN / "kinds_tensorflow"
    folder.mkdir(exist_ok=True)
    parts = []
    for i, keys in enumerate((list(kinds)[:4], list(kinds)[4:])):
        parts.append(str(folder / f"part{i}"))
        tf.raw_ops.SaveV2(prefix=parts[-1], tensor_names=keys, shape_and_slices=[""] * len(keys),
                          tensors=[tf.constant(kinds[key]) for key in keys])
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, delete_old_dirs=False,
                                  destination_prefix=str(folder / "kinds"))
    tf.raw_ops.SaveV2(prefix=str(folder / "sliced"), tensor_names=["a"],
                      shape_and_slices=["4 2 0,2:0,2"],
                      tensors=[tf.constant(np.ones((2, 2), np.float32))])
    snappy_index(GOLDEN / "bert_tensorflow/bert_model.ckpt.index",
                 GOLDEN / "bert_tensorflow/snappy.index")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def put_varint(value):
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def snappy_index(source, target):
    """Writes the same table with compressed blocks, as older writers do."""
    import cramjam

    def masked(data):
        table = []
        for byte in range(256):
            for _ in range(8):
                byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
            table.append(byte)
        crc = 0xFFFFFFFF
        for byte in data:
            crc = crc >> 8 ^ table[crc & 255 ^ byte]
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    data, out = source.read_bytes(), b""

    def content(handle):
        offset, at = varint(handle, 0)
        size, at = varint(handle, at)
        assert data[offset + size] == 0
        return data[offset:offset + size]

    def entries(block):
        restarts = struct.unpack("<I", block[-4:])[0]
        end, at, key = len(block) - 4 * (restarts + 1), 0, b""
        while at < end:
            shared, at = varint(block, at)
            own, at = varint(block, at)
            size, at = varint(block, at)
            key = key[:shared] + block[at:at + own]
            yield key, block[at + own:at + own + size]
            at += own + size

    def put(block, compress):
        nonlocal out
        body = bytes(cramjam.snappy.compress_raw(block)) if compress else block
        handle = put_varint(len(out)) + put_varint(len(body))
        body += bytes([1 if compress else 0])
        out += body + struct.pack("<I", masked(body))
        return handle

    footer = data[-48:]
    _, at = varint(footer, 0)
    _, at = varint(footer, at)
    index = b""
    for key, handle in entries(content(footer[at:])):
        moved = put(content(handle), True)
        index += put_varint(0) + put_varint(len(key)) + put_varint(len(moved)) + key + moved
    empty = struct.pack("<II", 0, 1)
    handles = put(empty, False) + put(index + empty, True)
    target.write_bytes(out + handles.ljust(40, b"\0") + footer[-8:])

if __name__ == "__main__":
    steps = {"torch": torch_step, "tensorflow": tensorflow_step}
    if len(sys.argv) != 2 or sys.argv[1] not in steps:
        sys.exit(__doc__)
    steps[sys.argv[1]]()
