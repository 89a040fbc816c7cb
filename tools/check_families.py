#!/usr/bin/env python3
"""Compares onebit with transformers on every family of encoders and every class that both have.

    tools/check_families.py --program build/onebit [--work DIR] [--only roberta ...]

Makes small models with random weights, as tools/make_family_goldens.py does, and checks of each:

folder     onebit converts it. transformers loads the result without a missing or an unexpected key,
           with the same tensors bit for bit and the same config. Converting that again changes no
           byte
outputs    vectors, probabilities of masked words, of classes and of tags, scores of answers
gradients  of every tensor that classifying, tagging or answering trains. They are taken from one
           update of AdamW with an epsilon of 1, which is g / (|g| + 1)
steps      three updates of AdamW

The reference is transformers in double precision, sequence by sequence. An output may differ by
1e-5, a gradient by 1e-5 of the largest one in its tensor, and a value after three steps by 1e-5.
Sums of a bias may cancel, so a gradient may also differ by four times as much as transformers' own
in f32.
Needs torch, transformers 5, safetensors.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import torch
import transformers
from safetensors.torch import load_file

import make_family_goldens as goldens

TOLERANCE = 1e-5
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CLS, SEP, MASK = 2, 3, 4
WORDS = 101
LABELS = ["no", "other", "yes"]
DROPOUTS = ["hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "dropout",
            "attention_dropout", "seq_classif_dropout", "qa_dropout", "embedding_dropout",
            "mlp_dropout"]
STEPS = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-4, weight_decay=0.01)
GRADIENT = dict(lr=100.0, betas=(0.9, 0.999), eps=1.0, weight_decay=0.0)


class Failure(Exception):
    pass


class Check:
    """One class of one family."""

    def __init__(self, program, work, prefix, suffix, config):
        self.program, self.work = program, work
        self.config, self.suffix, self.kind = config, suffix, getattr(transformers, prefix + suffix)
        self.given = work / "given"
        self.seen, self.wrong = {}, []
        random.seed(7)
        torch.manual_seed(7)
        self.texts = [[random.randrange(5, WORDS) for _ in range(n)] for n in (9, 1, 30, 17, 22, 5)]

    def run(self, *arguments):
        command = [str(self.program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def save(self):
        config = self.config
        if "Classification" in self.suffix:
            config.id2label = dict(enumerate(LABELS))
            config.label2id = {label: i for i, label in enumerate(LABELS)}
        else:
            config.num_labels = 2
        for key in DROPOUTS:
            # DistilBERT's belongs to its classifier.
            is_used = key != "seq_classif_dropout" or self.suffix == "ForSequenceClassification"
            if is_used and getattr(config, key, None) is not None:
                setattr(config, key, 0.0)
        goldens.random_model(self.kind(config)).save_pretrained(self.given)
        words = SPECIALS + [f"w{i}" for i in range(5, WORDS)]
        (self.given / "vocab.txt").write_text("\n".join(words) + "\n")
        (self.given / "tokenizer_config.json").write_text('{"do_lower_case": true}')

    def load(self, folder, dtype=torch.float64):
        model, report = self.kind.from_pretrained(folder, dtype=dtype,
                                                  attn_implementation="eager",
                                                  output_loading_info=True)
        strange = [(key, report[key]) for key in ("missing_keys", "unexpected_keys",
                                                  "mismatched_keys") if report[key]]
        # ELECTRA's discriminator is left out: no task of onebit has its head.
        strange = [(key, names) for key, names in strange
                   if any("discriminator_predictions" not in name for name in names)]
        if strange:
            raise Failure(f"{folder}: {strange}")
        return model.eval()

    def largest(self, name, difference, where="", limit=TOLERANCE):
        self.seen[name] = max(self.seen.get(name, 0.0), float(difference))
        if not difference <= limit:
            self.wrong.append(f"{name} {float(difference):.1e} {where}")

    # folder

    def check_folder(self):
        once, twice = self.work / "once", self.work / "twice"
        self.run("convert", self.given, once)
        self.run("convert", once, twice)
        before, after = self.load(self.given), self.load(once)
        left = dict(after.named_parameters())
        for name, value in before.named_parameters():
            if name.startswith("discriminator_predictions."):
                left.pop(name)
            elif not torch.equal(value, left.pop(name)):
                raise Failure(f"{name} has other values")
        if left:
            raise Failure(f"further tensors: {sorted(left)}")
        ours, theirs = after.config.to_dict(), before.config.to_dict()
        # What older versions of transformers read is written as well.
        ignored = {"_name_or_path", "transformers_version", "dtype", "architectures",
                   "position_embedding_type", "tie_word_embeddings", "global_attn_every_n_layers"}
        other = {key: (theirs.get(key), ours.get(key)) for key in {*ours, *theirs} - ignored
                 if theirs.get(key) != ours.get(key)}
        if other:
            raise Failure(f"the config has other values: {other}")
        for file in ("model.safetensors", "config.json", "vocab.txt"):
            if (once / file).read_bytes() != (twice / file).read_bytes():
                raise Failure(f"{file} differs the second time")

    # outputs

    def ids(self, text):
        return torch.tensor([[CLS, *text, SEP]])

    def lines(self):
        return [" ".join(f"w{i}" for i in text) for text in self.texts]

    def check_outputs(self):
        {"Model": self.check_vectors, "ForMaskedLM": self.check_words,
         "ForSequenceClassification": self.check_classes, "ForTokenClassification": self.check_tags,
         "ForQuestionAnswering": self.check_scores}[self.suffix]()

    def check_vectors(self):
        (self.work / "texts.txt").write_text("\n".join(self.lines()) + "\n")
        self.run("embed", "encode", "--model", self.given, "--input", self.work / "texts.txt",
                 "--output", self.work / "vectors.safetensors", "--threads", 1)
        [vectors] = load_file(self.work / "vectors.safetensors").values()
        model = self.load(self.given)
        for text, vector in zip(self.texts, vectors.double(), strict=True):
            mean = model(self.ids(text)).last_hidden_state[0].mean(0)
            scale = max(1.0, mean.abs().max())
            self.largest("outputs", (vector - mean).abs().max() / scale)

    def check_words(self):
        model = self.load(self.given)
        for text in self.texts[:3]:
            masked = text[:-1] + [MASK]
            words = " ".join("[MASK]" if i == MASK else f"w{i}" for i in masked)
            [found] = json.loads(self.run("fill", self.given, words, "--json", "--top", WORDS,
                                          "--threads", 1))
            wanted = model(self.ids(masked)).logits[0, len(masked)].softmax(-1)
            vocabulary = (self.given / "vocab.txt").read_text().split()
            for candidate in found:
                token = vocabulary.index(candidate["token"])
                self.largest("outputs", abs(wanted[token] - candidate["probability"]))

    def check_classes(self):
        (self.work / "texts.tsv").write_text("text\n" + "\n".join(self.lines()) + "\n")
        self.run("classify", "predict", "--model", self.given, "--input", self.work / "texts.tsv",
                 "--output", self.work / "out.jsonl", "--threads", 1)
        model = self.load(self.given)
        rows = (self.work / "out.jsonl").read_text().splitlines()
        for text, row in zip(self.texts, map(json.loads, rows), strict=True):
            wanted = model(self.ids(text)).logits[0].softmax(-1)
            for label, probability in zip(LABELS, wanted):
                self.largest("outputs", abs(probability - row["probabilities"][label]))

    def check_tags(self):
        rows = [json.dumps({"tokens": line.split()}) for line in self.lines()]
        (self.work / "words.jsonl").write_text("\n".join(rows) + "\n")
        self.run("tag", "predict", "--model", self.given, "--input", self.work / "words.jsonl",
                 "--output", self.work / "out.jsonl", "--threads", 1)
        model = self.load(self.given)
        rows = (self.work / "out.jsonl").read_text().splitlines()
        for text, row in zip(self.texts, map(json.loads, rows), strict=True):
            wanted = model(self.ids(text)).logits[0, 1:-1].softmax(-1)
            for place, (tag, probability) in enumerate(zip(row["tags"], row["probabilities"],
                                                           strict=True)):
                self.largest("outputs", abs(wanted[place, LABELS.index(tag)] - probability))

    def question_rows(self):
        """Ids, segments, and the token where the passage begins."""
        for text in self.texts:
            question, passage = [5, 6, 7], text + [8, 9]
            ids = [CLS, *question, SEP, *passage, SEP]
            yield ids, [0] * 5 + [1] * (len(passage) + 1), 5

    def write_squad(self):
        paragraphs = []
        for number, text in enumerate(self.texts):
            words = [f"w{i}" for i in text + [8, 9]]
            answer = {"text": words[1], "answer_start": len(words[0]) + 1}
            paragraphs.append({"context": " ".join(words), "qas": [
                {"id": str(number), "question": "w5 w6 w7", "answers": [answer]}]})
        data = {"version": "1.1", "data": [{"title": "T", "paragraphs": paragraphs}]}
        (self.work / "squad.json").write_text(json.dumps(data))

    def scores_of(self, model, ids, segments):
        inputs = dict(input_ids=torch.tensor([ids]))
        if getattr(model.config, "type_vocab_size", 0) == 2:
            inputs["token_type_ids"] = torch.tensor([segments])
        output = model(**inputs)
        return output.start_logits[0], output.end_logits[0]

    def check_scores(self):
        self.write_squad()
        self.run("squad", "predict", "--model", self.given, "--input", self.work / "squad.json",
                 "--output", self.work / "out.json", "--logits", self.work / "logits.jsonl",
                 "--threads", 1)
        model = self.load(self.given)
        rows = (self.work / "logits.jsonl").read_text().splitlines()
        for (ids, segments, _), row in zip(self.question_rows(), map(json.loads, rows), strict=True):
            for wanted, key in zip(self.scores_of(model, ids, segments), ("start", "end")):
                got = torch.tensor(row[key], dtype=torch.float64)
                self.largest("outputs", (got - wanted[:len(got)]).abs().max())

    # training

    def task(self):
        return {"ForSequenceClassification": "classify", "ForTokenClassification": "tag",
                "ForQuestionAnswering": "squad"}.get(self.suffix)

    def labels(self):
        rows = [[i % 3 for i in text] for text in self.texts]
        return [row[0] for row in rows] if self.task() == "classify" else rows

    def write_training(self):
        """Returns the options that name the data."""
        path = self.work / "train.jsonl"
        if self.task() == "squad":
            self.write_squad()
            return ["--train", self.work / "squad.json"]
        rows = []
        for line, label in zip(self.lines(), self.labels(), strict=True):
            if self.task() == "classify":
                rows.append({"text": line, "label": LABELS[label]})
            else:
                rows.append({"tokens": line.split(), "tags": [LABELS[i] for i in label]})
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return ["--train", path]

    def loss(self, model):
        entropy = torch.nn.functional.cross_entropy
        if self.task() == "classify":
            logits = torch.cat([model(self.ids(text)).logits for text in self.texts])
            return entropy(logits, torch.tensor(self.labels()))
        if self.task() == "tag":
            logits = torch.cat([model(self.ids(text)).logits[0, 1:-1] for text in self.texts])
            return entropy(logits, torch.tensor(sum(self.labels(), [])))
        losses = []
        for ids, segments, begin in self.question_rows():
            place = torch.tensor([begin + 1])
            for scores in self.scores_of(model, ids, segments):
                losses.append(entropy(scores[None], place) / 2)
        return sum(losses) / len(self.texts)

    def trained(self, name, steps, settings):
        """The values after so many updates of onebit."""
        recipe = {"task": self.task(), "train_batch_size": len(self.texts),
                  "optimizer": {"type": "AdamW", "params": settings},
                  "data": {"max_sequence_length": 48, "epochs": steps}, "run": {"seed": 1}}
        if self.task() == "squad":
            recipe["data"] |= {"doc_stride": 16, "max_question_length": 8}
        path, output = self.work / f"{name}.json", self.work / name
        path.write_text(json.dumps(recipe))
        self.run(self.task(), "train", "--model", self.given, *self.write_training(), "--recipe",
                 path, "--output", output, "--threads", 1)
        return dict(self.load(output / f"global_step{steps}/model").named_parameters())

    def check_training(self):
        model = self.load(self.given)
        parameters = dict(model.named_parameters())
        before = {name: value.detach().clone() for name, value in parameters.items()}
        self.loss(model).backward()
        rough_model = self.load(self.given, torch.float32)
        self.loss(rough_model).backward()
        rough = {name: p.grad for name, p in rough_model.named_parameters() if p.grad is not None}
        most = max(p.grad.abs().max() for p in parameters.values() if p.grad is not None)
        after = self.trained("one", 1, GRADIENT)
        for name, parameter in parameters.items():
            update = (before[name] - after[name].detach()) / GRADIENT["lr"]
            gradient = update / (1 - update.abs())
            wanted = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            largest = wanted.abs().max()
            # Softmax ignores what is added to all scores: a key's bias has no gradient.
            scale = largest if largest > 1e-9 * most else most
            rounding = (rough.get(name, wanted).double() - wanted).abs().max() / scale
            self.largest("gradients", (gradient - wanted).abs().max() / scale, name,
                         max(TOLERANCE, 4 * rounding))
        rules = dict(STEPS)
        decay = rules.pop("weight_decay")
        optimizer = torch.optim.AdamW(
            [dict(params=[p for p in parameters.values() if p.ndim > 1], weight_decay=decay),
             dict(params=[p for p in parameters.values() if p.ndim == 1], weight_decay=0.0)], **rules)
        for _ in range(3):
            optimizer.zero_grad()
            self.loss(model).backward()
            optimizer.step()
        after = self.trained("three", 3, STEPS)
        for name, parameter in parameters.items():
            self.largest("steps", (parameter - after[name]).detach().abs().max(), name)

    def __call__(self):
        self.save()
        self.check_folder()
        if self.suffix in ("ForPreTraining",):
            return
        with torch.no_grad():
            self.check_outputs()
        if self.task():
            self.check_training()
        if self.wrong:
            raise Failure("; ".join(self.wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", help="model types")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = 0
    print(f"{'family':20} {'class':28} {'outputs':>9} {'gradients':>9} {'steps':>9}")
    with tempfile.TemporaryDirectory() as temporary:
        root = given.work or pathlib.Path(temporary)
        for prefix, config in goldens.configs():
            if given.only and config.model_type not in given.only:
                continue
            for suffix in goldens.CLASSES:
                if not hasattr(transformers, prefix + suffix):
                    continue
                work = root / (prefix + suffix)
                work.mkdir(parents=True)
                check = Check(given.program.resolve(), work, prefix, suffix, type(config).from_dict(
                    config.to_dict()))
                try:
                    check()
                except Failure as failure:
                    failed += 1
                    print(f"{config.model_type} {suffix}: {failure}")
                cells = [f"{check.seen[name]:9.1e}" if name in check.seen else " " * 9
                         for name in ("outputs", "gradients", "steps")]
                print(f"{config.model_type:20} {suffix:28} {' '.join(cells)}", flush=True)
    if failed:
        sys.exit(f"{failed} classes failed")


if __name__ == "__main__":
    main()
