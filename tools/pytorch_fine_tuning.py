"""Fine-tunes with transformers on PyTorch, in f32: padded sequences, AdamW (fused), a linear
schedule with a warm-up of a tenth, clipping at 1."""

import random
import time

import torch
from torch.nn.functional import cross_entropy, normalize
from transformers import (AutoModel, AutoModelForSequenceClassification,
                          AutoModelForTokenClassification, AutoTokenizer)

import fine_tuning_examples as data

IGNORED = -100
PART = 8  # sequences per part of a batch, whose sequences have similar lengths
SCALE = 20  # factor of cosines in the ranking loss


def open_model(task, folder, labels=(), dropout=None):
    options = {} if dropout is None else {"hidden_dropout_prob": dropout,
                                          "attention_probs_dropout_prob": dropout}
    if task == "embed":
        return AutoModel.from_pretrained(folder, add_pooling_layer=False, **options)
    if labels:
        options |= {"id2label": dict(enumerate(labels)),
                    "label2id": {label: i for i, label in enumerate(labels)}}
    kind = AutoModelForTokenClassification if task == "tag" else AutoModelForSequenceClassification
    return kind.from_pretrained(folder, **options)


class Encoder:
    """Encodes examples as token ids with a label of the sequence or of each token."""

    def __init__(self, task, folder, labels):
        self.task = task
        self.numbers = {label: i for i, label in enumerate(labels)}
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def ids(self, texts, **options):
        return self.tokenizer(texts, truncation=True, max_length=data.LIMIT, **options)

    def sentences(self, examples):
        encoded = self.ids([e["tokens"] for e in examples], is_split_into_words=True)
        made = []
        for i, example in enumerate(examples):
            words, label = encoded.word_ids(i), []
            for before, word in zip([None, *words], words):
                first = word is not None and word != before
                label.append(self.numbers[example["tags"][word]] if first else IGNORED)
            if sum(l != IGNORED for l in label) != len(example["tags"]):
                raise SystemExit(f"words without a token, or too many for {data.LIMIT} tokens: "
                                 f"{example['tokens']}")
            made.append({"ids": encoded["input_ids"][i], "label": label})
        return made

    def __call__(self, examples):
        if self.task == "tag":
            return self.sentences(examples)
        if self.task == "classify":
            return [{"ids": ids, "label": self.numbers[e["label"]]} for ids, e in
                    zip(self.ids([e["text"] for e in examples])["input_ids"], examples)]
        both = [self.ids([e[key] for e in examples])["input_ids"] for key in ("query", "positive")]
        return [{"query": query, "ids": ids} for query, ids in zip(*both)]


def padded(sequences):
    longest = max(map(len, sequences))
    ids, mask = (torch.zeros(len(sequences), longest, dtype=torch.long) for _ in range(2))
    for row, sequence in enumerate(sequences):
        ids[row, :len(sequence)] = torch.tensor(sequence)
        mask[row, :len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def vectors_of(model, sequences):
    """Returns the means of the last hidden states, normalised to length 1."""
    batch = padded(sequences)
    mask = batch["attention_mask"][..., None].float()
    states = model(**batch).last_hidden_state
    return normalize((states * mask).sum(1) / mask.sum(1), dim=1)


def by_length(chunk, size=PART):
    ordered = sorted(chunk, key=lambda example: len(example["ids"]))
    return [ordered[i:i + size] for i in range(0, len(ordered), size)]


def targets_of(part):
    if isinstance(part[0]["label"], int):
        return torch.tensor([e["label"] for e in part])
    longest = max(len(e["label"]) for e in part)
    return torch.tensor([e["label"] + [IGNORED] * (longest - len(e["label"])) for e in part])


def backward(task, model, parts):
    """Computes the loss and the gradient of a step, of one padded batch or of its parts."""
    if task == "embed":
        queries = vectors_of(model, [e["query"] for e in sum(parts, [])])
        positives = torch.cat([vectors_of(model, [e["ids"] for e in part]) for part in parts])
        loss = cross_entropy(SCALE * queries @ positives.T, torch.arange(len(queries)))
        loss.backward()
        return loss.item()
    targets = [targets_of(part) for part in parts]
    count = sum((t != IGNORED).sum().item() for t in targets)
    total = 0.0
    for part, target in zip(parts, targets):
        logits = model(**padded([e["ids"] for e in part])).logits
        loss = cross_entropy(logits.flatten(0, -2), target.flatten(), reduction="sum") / count
        loss.backward()
        total += loss.item()
    return total


class Trainer:
    def __init__(self, task, model, rate, steps):
        self.task, self.model = task, model.train()
        groups = [{"params": [p for p in model.parameters() if (p.ndim > 1) == decays],
                   "weight_decay": 0.01 if decays else 0.0} for decays in (True, False)]
        self.optimizer = torch.optim.AdamW(groups, lr=rate, eps=1e-8, fused=True)
        warmup = 0.1 * steps
        factor = lambda s: s / warmup if s < warmup else (steps - s) / max(1, steps - warmup)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)

    def step(self, parts):
        self.optimizer.zero_grad(set_to_none=True)
        loss = backward(self.task, self.model, parts)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        return loss, norm.item()


def chunks(examples, batch, steps, seed):
    order, chance = [], random.Random(seed)
    for _ in range(steps):
        while len(order) < batch:
            order += chance.sample(range(len(examples)), len(examples))
        yield [examples[i] for i in order[:batch]]
        order = order[batch:]


def train(task, model, examples, seed):
    """Trains on batches that are split by length into parts, which add up to the same gradient."""
    steps = -(-data.EPOCHS * len(examples) // data.BATCH[task])
    trainer = Trainer(task, model, data.RATES[task], steps)
    for step, chunk in enumerate(chunks(examples, data.BATCH[task], steps, seed)):
        loss, _ = trainer.step(by_length(chunk))
        if step % 10 == 0:
            print(f"pytorch, {task}, seed {seed}: step {step}/{steps}, loss {loss:.3f}", flush=True)


@torch.no_grad()
def outputs(task, model, sequences, size=16):
    """Returns logits or vectors of each sequence, in the order given."""
    model.eval()
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    made = [None] * len(sequences)
    for start in range(0, len(order), size):
        part = order[start:start + size]
        rows = [sequences[i] for i in part]
        results = vectors_of(model, rows) if task == "embed" else model(**padded(rows)).logits
        for i, row in zip(part, results):
            made[i] = row[:len(sequences[i])].double() if task == "tag" else row.double()
    return made


def outputs_of_examples(task, model, encoder, examples):
    """Returns logits per example (classify) or word (tag), or vectors of both columns (embed)."""
    if task == "embed":
        columns = [e["query"] for e in examples], data.paragraphs_of(examples)
        return [torch.stack(outputs(task, model, encoder.ids(list(texts))["input_ids"])).numpy()
                for texts in columns]
    encoded = encoder(examples)
    made = outputs(task, model, [e["ids"] for e in encoded])
    if task == "classify":
        return made
    return [logits[torch.tensor(e["label"]) != IGNORED] for logits, e in zip(made, encoded)]


def seconds_of_steps(trainer, batches):
    """Returns the mean wall-clock and processor seconds per step."""
    wall, processor = time.perf_counter(), time.process_time()
    for parts in batches:
        trainer.step(parts)
    return ((time.perf_counter() - wall) / len(batches),
            (time.process_time() - processor) / len(batches))


def timed_batches(examples, batch, steps, seed):
    """Returns the batches of a round in three variants: padded to the longest sequence, the same
    batches in parts by length, and batches of the whole file sorted by length, sampled evenly."""
    random_ones = list(chunks(examples, batch, steps, seed))
    sorted_ones = by_length(examples, batch)
    stride = (len(sorted_ones) - 1) / max(1, steps - 1)
    return {"padded": [[chunk] for chunk in random_ones],
            "parts": [by_length(chunk) for chunk in random_ones],
            "grouped": [[sorted_ones[round(i * stride)]] for i in range(steps)]}
