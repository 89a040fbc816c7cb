#!/usr/bin/env python3
"""Sentence vectors by onebit's Python package, sentence-transformers, onnxruntime, OpenVINO and
CTranslate2, for compare_inference.py.

  rival_inference.py prepare all MODEL_FOLDER FOLDER XQUAD.json
      writes each program's copies of the model into FOLDER, unless they are there
  rival_inference.py serve BACKEND MODEL_FOLDER FOLDER THREADS
      reads [texts, batch, file] lines, writes vectors of length 1 to the file, and answers with
      {"seconds": of the processor, "peak": MB}

The first two get the texts as they are. For the others, texts are sorted by length and padded to
the longest of a batch (CTranslate2 pads by itself). The int8 of onnxruntime is dynamic, with
weights by channel. CTranslate2's is dynamic, by row and channel. OpenVINO's is static, calibrated
by nncf on 150 of the texts, which favours it.
"""
import functools
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

LENGTH = 256


def tokenizer(model):
    from tokenizers import Tokenizer
    made = Tokenizer.from_file(str(model / "tokenizer.json"))
    made.no_padding()
    made.enable_truncation(LENGTH)
    return made


def export_onnx(model, path):
    import torch
    from transformers import AutoModel
    encoder = AutoModel.from_pretrained(model, attn_implementation="eager").eval()

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.encoder(input_ids=input_ids, attention_mask=attention_mask,
                                token_type_ids=token_type_ids).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tuple(torch.ones(2, 7, dtype=torch.int64) for _ in names)
    torch.onnx.export(Hidden(), example, str(path), input_names=names, output_names=["hidden"],
                      dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names + ["hidden"]},
                      opset_version=17, dynamo=False)


def quantise_onnx(source, path):
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(source), str(path), weight_type=QuantType.QInt8, per_channel=True,
                     extra_options={"DefaultTensorType": TensorProto.FLOAT},
                     op_types_to_quantize=["MatMul", "Gemm", "Attention"])


def fuse_onnx(source, path, model):
    from onnxruntime.transformers import optimizer
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    fused = optimizer.optimize_model(str(source), model_type="bert", opt_level=1, use_gpu=False,
                                     num_heads=config["num_attention_heads"],
                                     hidden_size=config["hidden_size"])
    fused.save_model_to_file(str(path))


def convert_openvino(source, path):
    import openvino
    openvino.save_model(openvino.convert_model(str(source)), str(path), compress_to_fp16=False)


def calibrate_openvino(source, path, model, xquad):
    import nncf
    import numpy
    import openvino
    texts = []
    for article in json.loads(xquad.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            texts.append(paragraph["context"])
            texts += [one["question"] for one in paragraph["qas"]]
    encode = tokenizer(model).encode

    def inputs(text):
        ids = numpy.array([encode(text).ids], numpy.int64)
        return {"input_ids": ids, "attention_mask": numpy.ones_like(ids),
                "token_type_ids": numpy.zeros_like(ids)}

    chosen = random.Random(0).sample(texts, 150)
    quantised = nncf.quantize(openvino.Core().read_model(str(source)),
                              nncf.Dataset(chosen, inputs), subset_size=len(chosen),
                              model_type=nncf.ModelType.TRANSFORMER,
                              preset=nncf.QuantizationPreset.MIXED)
    openvino.save_model(quantised, str(path))


def convert_ctranslate2(model, path, quantization):
    import ctranslate2
    ctranslate2.converters.TransformersConverter(str(model)).convert(
        str(path), quantization=quantization, force=True)


def steps(model, folder, xquad):
    plain, fused = folder / "plain.onnx", folder / "onnxruntime f32.onnx"
    openvino = folder / "openvino f32.xml"
    return {
        plain: lambda: export_onnx(model, plain),
        fused: lambda: fuse_onnx(plain, fused, model),
        folder / "onnxruntime int8.onnx":
            lambda: quantise_onnx(fused, folder / "onnxruntime int8.onnx"),
        openvino: lambda: convert_openvino(plain, openvino),
        folder / "openvino int8.xml":
            lambda: calibrate_openvino(openvino, folder / "openvino int8.xml", model, xquad),
        folder / "ctranslate2 f32":
            lambda: convert_ctranslate2(model, folder / "ctranslate2 f32", None),
        folder / "ctranslate2 int8":
            lambda: convert_ctranslate2(model, folder / "ctranslate2 int8", "int8"),
    }


def prepare(which, model, folder, xquad):
    """Each step in a process of its own: they do not bear each other's imports."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, step in steps(model, folder, xquad).items():
        if which == path.name:
            step()
        if which == "all" and not path.exists():
            made = subprocess.run([sys.executable, "-B", __file__, "prepare", path.name, model,
                                   folder, xquad], check=False, capture_output=True, text=True)
            problem = made.stderr.strip().splitlines()[-1:] if made.returncode else ["ready"]
            print(f"{path.name}: {' '.join(problem)}", flush=True)


def onnxruntime_hidden(folder, kind, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(folder / f"onnxruntime {kind}.onnx"), options,
                                           providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)[0]


def openvino_hidden(folder, kind, threads):
    import openvino
    model = folder / f"openvino {'int8' if kind == 'int8' else 'f32'}.xml"
    compiled = openvino.Core().compile_model(
        str(model), "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                            "PERFORMANCE_HINT": "LATENCY",
                            "INFERENCE_PRECISION_HINT": "bf16" if kind == "bf16" else "f32"})
    request = compiled.create_infer_request()
    return lambda inputs: request.infer(inputs, share_inputs=True)[compiled.output(0)]


def ctranslate2_hidden(folder, kind, threads):
    import ctranslate2
    import numpy
    encoder = ctranslate2.Encoder(str(folder / f"ctranslate2 {kind}"), device="cpu",
                                  compute_type="int8_float32" if kind == "int8" else "float32",
                                  inter_threads=1, intra_threads=threads)

    def hidden(inputs):
        ids = [list(row[:count]) for row, count in
               zip(inputs["input_ids"].tolist(), inputs["attention_mask"].sum(1))]
        return numpy.asarray(encoder.forward_batch(ids).last_hidden_state)

    return hidden


def onebit_encode(model, kind, threads):
    import onebit

    @functools.cache
    def encoder(batch):
        return onebit.Encoder(model, compute=kind, threads=threads, batch_size=batch,
                              max_sequence_length=LENGTH, normalize=True)

    return lambda texts, batch: encoder(batch).encode(texts)


def sentence_transformers_encode(model, kind, threads):
    import torch
    from sentence_transformers import SentenceTransformer
    torch.set_num_threads(threads)
    types = {"f32": torch.float32, "bf16": torch.bfloat16}
    encoder = SentenceTransformer(str(model), device="cpu",
                                  model_kwargs={"torch_dtype": types[kind]})
    encoder.max_seq_length = LENGTH
    return lambda texts, batch: encoder.encode(
        texts, batch_size=batch, normalize_embeddings=True, show_progress_bar=False,
        convert_to_numpy=True).astype("float32")


def make_encoder(backend, model, folder, threads):
    import numpy
    program, kind = backend.split()
    whole = {"onebit.Encoder": onebit_encode,
             "sentence-transformers": sentence_transformers_encode}.get(program)
    if whole:
        return whole(model, kind, threads)
    hidden = {"onnxruntime": onnxruntime_hidden, "openvino": openvino_hidden,
              "ctranslate2": ctranslate2_hidden}[program](folder, kind, threads)
    encode_batch = tokenizer(model).encode_batch

    def encode(texts, batch):
        ids = [one.ids for one in encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
        vectors = None
        for begin in range(0, len(order), batch):
            part = order[begin:begin + batch]
            tokens = numpy.zeros((len(part), max(len(ids[i]) for i in part)), numpy.int64)
            mask = numpy.zeros_like(tokens)
            for row, index in enumerate(part):
                tokens[row, :len(ids[index])] = ids[index]
                mask[row, :len(ids[index])] = 1
            states = hidden({"input_ids": tokens, "attention_mask": mask,
                             "token_type_ids": numpy.zeros_like(tokens)})
            weights = mask.astype(numpy.float32)[:, None, :]
            means = numpy.matmul(weights, states)[:, 0] / weights.sum(2)
            means /= numpy.linalg.norm(means, axis=1, keepdims=True)
            if vectors is None:
                vectors = numpy.empty((len(texts), means.shape[1]), numpy.float32)
            vectors[part] = means
        return vectors

    return encode


def serve(backend, model, folder, threads):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print
    import numpy
    encode = make_encoder(backend, model, folder, threads)
    encode(["a text to begin with"], 1)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        texts, batch, path = json.loads(line)
        before = time.process_time()
        vectors = encode(texts, batch)
        seconds = time.process_time() - before
        numpy.save(path, vectors)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": seconds, "peak": peak}), file=answers, flush=True)


def main():
    if len(sys.argv) != 6 or sys.argv[1] not in ("prepare", "serve"):
        sys.exit(__doc__)
    what, which, model, folder, last = sys.argv[1:]
    if what == "prepare":
        return prepare(which, Path(model), Path(folder), Path(last))
    threads = last
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = threads
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if int(threads) > 1 else "false"
    return serve(which, Path(model), Path(folder), int(threads))


if __name__ == "__main__":
    main()
