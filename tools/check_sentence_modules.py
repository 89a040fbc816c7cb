#!/usr/bin/env python3
"""Compares the vectors of random sentence models with sentence-transformers' on every path.

  check_sentence_modules.py PROGRAM [--python FOLDER]
                                          (pip install torch transformers sentence-transformers)

Makes a small BERT of random values, and with it a folder for each combination of poolings, Dense
layers, normalisation and prompts that sentence-transformers knows, in its own files and in the files
of older versions. `onebit embed encode`, the server's /embed, /v1/embeddings and /embed_all, `onebit
search`, a folder that `onebit convert` wrote, and with --python (the folder that contains the built
package) onebit.Encoder must give the same numbers within 1e-5.
"""
import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
import warnings
from pathlib import Path

import numpy
import torch
import transformers
from sentence_transformers import SentenceTransformer, models

MOST = 1e-5
HIDDEN = 48
TEXTS = ["the king went home", "a bird", "what is a store of words, and who keeps it?",
         "Rome is a city.", "one two three four five six seven eight nine ten " * 3, "x"]
PROMPTS = {"query": "search for the ", "passage": "read: "}
MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
ACTIVATIONS = ["Tanh", "ReLU", "GELU", "Sigmoid", "SiLU", "LeakyReLU", "ELU", "Mish", "Softplus",
               "ReLU6", "Softsign"]
FLAGS = {"cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens",
         "mean": "pooling_mode_mean_tokens", "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
         "weightedmean": "pooling_mode_weightedmean_tokens", "lasttoken": "pooling_mode_lasttoken"}


def make_encoder(folder):
    """A BERT of random values. Its norms and biases differ from the values of a new model, too."""
    words = sorted(set(re.findall(r"\w+|[^\w\s]", " ".join([*TEXTS, *PROMPTS.values()]).lower())))
    letters = sorted({letter for word in words for letter in word})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(
        words + letters + ["##" + letter for letter in letters])]
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in vocabulary), encoding="utf-8")
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=HIDDEN, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=96, max_position_embeddings=40, initializer_range=0.2)
    model = transformers.BertModel(config, add_pooling_layer=False)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "LayerNorm" in name or name.endswith("bias"):
                value.add_(0.1 * torch.randn_like(value))
    model.save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=24).save_pretrained(
        folder)


def dense(inputs, outputs, activation, bias, residual=False):
    return models.Dense(inputs, outputs, bias=bias, use_residual=residual,
                        activation_function=getattr(torch.nn, activation)())


def combinations():
    """Yields a name, poolings, layers, whether to normalize, and include_prompt."""
    for i, mode in enumerate(MODES):
        for include_prompt in (True, False):
            yield f"{mode}-{include_prompt}", [mode], [], i % 2 == 0, include_prompt
    for i, activation in enumerate(["Identity", *ACTIVATIONS]):
        mode = MODES[i % len(MODES)]
        yield (f"{activation}", [mode], [dense(HIDDEN, 20 + i, activation, i % 2 == 0)],
               i % 3 == 0, i % 2 == 0)
    yield "all", MODES, [], True, False
    yield "reverse", list(reversed(MODES)), [], False, True
    yield "twice", ["mean", "mean"], [dense(2 * HIDDEN, 30, "Tanh", True)], True, True
    yield ("three", ["cls", "mean"], [dense(2 * HIDDEN, 64, "Tanh", True),
                                      dense(64, 64, "GELU", False, residual=True),
                                      dense(64, 16, "Identity", True, residual=True)], True, False)


def make_model(encoder, folder, modes, layers, normalizes, include_prompt):
    transformer = models.Transformer(str(encoder))
    pooling = models.Pooling(HIDDEN, modes[0] if len(modes) == 1 else modes,
                             include_prompt=include_prompt)
    modules = [transformer, pooling, *layers] + ([models.Normalize()] if normalizes else [])
    model = SentenceTransformer(modules=modules, prompts=PROMPTS, device="cpu")
    model.save(str(folder), create_model_card=False)
    return model


def make_older(folder):
    """Writes the module files as versions before 5 did. Flags have one order only."""
    for path in folder.glob("*_Pooling/config.json"):
        config = json.loads(path.read_text(encoding="utf-8"))
        modes = config.pop("pooling_mode")
        modes = [modes] if isinstance(modes, str) else modes
        if modes != [mode for mode in MODES if mode in modes]:
            return False
        config["word_embedding_dimension"] = config.pop("embedding_dimension")
        config.update({flag: mode in modes for mode, flag in FLAGS.items()})
        path.write_text(json.dumps(config), encoding="utf-8")
    for path in folder.glob("*_Dense/model.safetensors"):
        from safetensors.torch import load_file
        torch.save(load_file(path), path.with_name("pytorch_model.bin"))
        path.unlink()
        config = json.loads((path.parent / "config.json").read_text(encoding="utf-8"))
        for key in ("module_input_name", "module_output_name"):
            config.pop(key, None)
        (path.parent / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = folder / "modules.json"
    modules = json.loads(path.read_text(encoding="utf-8"))
    for module in modules:
        module["type"] = "sentence_transformers.models." + module["type"].rsplit(".", 1)[1]
    path.write_text(json.dumps(modules), encoding="utf-8")
    return True


class Paths:
    """The ways from texts to vectors."""

    def __init__(self, given, work):
        self.given, self.work = given, work
        (work / "texts.txt").write_text("".join(text + "\n" for text in TEXTS), encoding="utf-8")
        self.worst = {}

    def run(self, *command):
        done = subprocess.run([self.given.program, *map(str, command)], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def compare(self, path, name, found, wanted):
        found = numpy.asarray(found, dtype=numpy.float64)
        assert found.shape == wanted.shape, f"{path}, {name}: {found.shape}, not {wanted.shape}"
        scale = max(1.0, numpy.abs(wanted).max())
        difference = numpy.abs(found - wanted).max() / scale
        assert difference <= MOST, f"{path}, {name}: differs by {difference:.1e}"
        self.worst[path] = max(self.worst.get(path, 0), difference)

    def encode(self, folder, *options):
        output = self.work / "vectors.npy"
        self.run("embed", "encode", "-m", folder, "-i", self.work / "texts.txt", "-o", output,
                 "--device", "cpu", "--threads", 1, *options)
        return numpy.load(output)

    def search(self, folder, name, model):
        index = self.work / "index"
        self.run("search", "index", "-m", folder, "-i", self.work / "texts.txt", "-o", index,
                 "--overwrite", "--device", "cpu", "--passage-tokens", 10)
        passages = [json.loads(line)["text"] for line in
                    (index / "passages.jsonl").read_text(encoding="utf-8").splitlines()]
        wanted = model.encode(passages, prompt=PROMPTS["passage"], normalize_embeddings=True)
        self.compare("search index", name, numpy.load(index / "vectors.npy"), wanted)
        found = [json.loads(line) for line in self.run(
            "search", "query", "--index", index, "-n", len(passages), "--json", "the king home",
            "--device", "cpu").splitlines()]
        query = model.encode("the king home", prompt=PROMPTS["query"], normalize_embeddings=True)
        cosines = {text: wanted[i] @ query for i, text in enumerate(passages)}
        self.compare("search query", name, [one["cosine"] for one in found],
                     numpy.array([cosines[one["text"]] for one in found]))

    @contextlib.contextmanager
    def server(self, folders):
        command = [self.given.program, "serve", "--port", "0", "--threads", "1", "--device", "cpu"]
        for name, folder in folders.items():
            command += ["--model", f"{name}={folder}"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if found := re.match(r"serving on (http:\S+)", line):
                break
        else:
            raise AssertionError("the server did not start")
        try:
            yield found[1]
        finally:
            process.terminate()
            process.communicate()

    @staticmethod
    def ask(url, body):
        request = urllib.request.Request(url, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def serve(self, url, name, model):
        for prompt in (None, "query"):
            text = PROMPTS[prompt] if prompt else None
            body = {"inputs": TEXTS, "model": name, "prompt_name": prompt}
            plain = model.encode(TEXTS, prompt=text)
            self.compare("/embed", name, self.ask(url + "/embed", {**body, "normalize": False})
                         if not isinstance(model[-1], models.Normalize)
                         else self.ask(url + "/embed", body), plain)
            short = model.encode(TEXTS, prompt=text, truncate_dim=8, normalize_embeddings=True)
            self.compare("/embed", name, self.ask(url + "/embed", {**body, "dimensions": 8}), short)
        reply = self.ask(url + "/v1/embeddings", {"input": TEXTS, "model": name})
        self.compare("/v1/embeddings", name, [one["embedding"] for one in reply["data"]],
                     model.encode(TEXTS, normalize_embeddings=True))
        tokens = self.ask(url + "/embed_all", {"inputs": TEXTS, "model": name})
        states = model.encode(TEXTS, output_value="token_embeddings")
        for found, wanted in zip(tokens, states):
            self.compare("/embed_all", name, found, wanted.numpy())

    def check(self, folder, name, model):
        self.compare("embed encode", name, self.encode(folder), model.encode(TEXTS))
        for prompt, text in PROMPTS.items():
            self.compare("embed encode --prompt", name, self.encode(folder, "--prompt", prompt),
                         model.encode(TEXTS, prompt=text))
        self.compare("embed encode --dimensions", name,
                     self.encode(folder, "--dimensions", 8, "--normalize"),
                     model.encode(TEXTS, truncate_dim=8, normalize_embeddings=True))
        if self.given.python:
            encoder = sys.modules["onebit"].Encoder(folder, threads=1)
            self.compare("onebit.Encoder", name, encoder.encode(TEXTS), model.encode(TEXTS))
            encoder = sys.modules["onebit"].Encoder(folder, threads=1, dimensions=8, normalize=True,
                                                    prompt="query")
            self.compare("onebit.Encoder", name, encoder.encode(TEXTS),
                         model.encode(TEXTS, prompt=PROMPTS["query"], truncate_dim=8,
                                      normalize_embeddings=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--python", type=Path)
    given = parser.parse_args()
    if given.python:
        sys.path.insert(0, str(given.python))
        __import__("onebit")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        make_encoder(work / "encoder")
        paths, made = Paths(given, work), {}
        for number, (name, *parts) in enumerate(combinations()):
            folder = work / name
            model = make_model(work / "encoder", folder, *parts)
            if number % 2 == 0 and make_older(folder):
                name += " (older files)"
            made[name] = (folder, SentenceTransformer(str(folder), device="cpu"))
            paths.check(folder, name, made[name][1])
            paths.compare("sentence-transformers itself", name, made[name][1].encode(TEXTS),
                          model.encode(TEXTS))
            if number % 4 == 0:
                paths.search(folder, name, model)
            if parts[1] or len(parts[0]) > 1:
                copy = work / f"{number}-converted"
                paths.run("convert", folder, copy)
                paths.compare("converted, onebit", name, paths.encode(copy), model.encode(TEXTS))
                opened = SentenceTransformer(str(copy), device="cpu")
                paths.compare("converted, sentence-transformers", name,
                              opened.encode(TEXTS, prompt=PROMPTS["query"]),
                              model.encode(TEXTS, prompt=PROMPTS["query"]))
        with paths.server({name: folder for name, (folder, _) in made.items()}) as url:
            for name, (_, model) in made.items():
                paths.serve(url, name, model)
        for path, worst in paths.worst.items():
            print(f"{path}: largest difference {worst:.1e}")
        print(f"{len(made)} models of {len(paths.worst)} paths agree")


if __name__ == "__main__":
    main()
