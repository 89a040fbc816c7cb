"""Small models with their data, for bench/torch_study.py: a character GPT, a convolutional net and a
BERT of transformers. Every task has its samples from a generator, so that runs of the same seed see
the same samples."""

import gzip
import importlib.util
import math
import pathlib

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[1]
HELD_OUT = 20  # batches


def text_of(options):
    """Returns most of the text, and a held-out tenth."""
    paths = [options.text] if options.text else sorted(ROOT.glob("docs/*.md"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    parts = [text[begin:begin + 5000] for begin in range(0, len(text), 5000)]
    kept = [part for number, part in enumerate(parts) if number % 10 != 9]
    return "".join(kept), "".join(part for number, part in enumerate(parts) if number % 10 == 9)


def windows(data, length, count, generator):
    starts = torch.randint(len(data) - length, (count,), generator=generator)
    return torch.stack([data[start:start + length] for start in starts])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norms[1](x))))


class CharacterGpt(nn.Module):
    def __init__(self, characters, length, width=96, layers=3, heads=4):
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, rows):
        x = self.embedding(rows[:, :-1]) + self.position
        logits = self.head(self.norm(self.blocks(x)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


class GptTask:
    """Predicts the next character of the text."""

    rate, batch, length = 3e-3, 12, 64

    def __init__(self, options):
        train, valid = text_of(options)
        names = {name: number for number, name in enumerate(sorted(set(train + valid)))}
        self.characters = len(names)
        self.train, self.valid = (torch.tensor([names[letter] for letter in text])
                                  for text in (train, valid))

    def model(self):
        return CharacterGpt(self.characters, self.length)

    def sample(self, generator, is_held_out=False):
        data = self.valid if is_held_out else self.train
        return windows(data, self.length + 1, self.batch, generator)


class ConvolutionalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.GroupNorm(4, 64), nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 10))

    def forward(self, sample):
        images, labels = sample
        return nn.functional.cross_entropy(self.layers(images), labels)


class DigitsTask:
    """Reads digits under noise. Without noise the loss ends near zero, where runs cannot be
    compared."""

    rate, batch, noise = 1e-3, 32, 0.5

    def __init__(self, options):
        path = options.digits
        if path is None:
            found = importlib.util.find_spec("sklearn")
            if found is None:
                raise SystemExit("the task digits needs scikit-learn, or --digits with its file "
                                 "sklearn/datasets/data/digits.csv.gz")
            path = pathlib.Path(found.origin).parent / "datasets/data/digits.csv.gz"
        with gzip.open(path, "rt") as file:
            rows = torch.tensor([[float(word) for word in line.split(",")] for line in file])
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        self.images = rows[order, :64].view(-1, 1, 8, 8) / 16
        self.labels = rows[order, 64].long()
        self.held_out = len(rows) // 5

    def model(self):
        return ConvolutionalNet()

    def sample(self, generator, is_held_out=False):
        first, last = (0, self.held_out) if is_held_out else (self.held_out, len(self.labels))
        chosen = torch.randint(first, last, (self.batch * (8 if is_held_out else 1),),
                               generator=generator)
        noise = self.noise * torch.randn(len(chosen), 1, 8, 8, generator=generator)
        return self.images[chosen] + noise, self.labels[chosen]


class NoisyBert(nn.Module):
    def __init__(self, characters, length):
        super().__init__()
        import transformers
        self.bert = transformers.BertForMaskedLM(transformers.BertConfig(
            vocab_size=characters, hidden_size=96, num_hidden_layers=3, num_attention_heads=4,
            intermediate_size=384, max_position_embeddings=length))

    def forward(self, sample):
        rows, labels = sample
        return self.bert(input_ids=rows, labels=labels).loss


class BertTask:
    """Finds the text from a copy in which some characters are replaced by others. (A model of this
    size that fills masked words or characters learns no more in some thousand steps than how
    frequent each of them is, with any optimizer.)"""

    rate, batch, length, replaced = 4e-3, 24, 16, 0.3

    def __init__(self, options):
        train, valid = text_of(options)
        names = {name: number for number, name in enumerate(sorted(set(train + valid)))}
        self.characters = len(names)
        self.train, self.valid = (torch.tensor([names[letter] for letter in text])
                                  for text in (train, valid))

    def model(self):
        return NoisyBert(self.characters, self.length)

    def sample(self, generator, is_held_out=False):
        data = self.valid if is_held_out else self.train
        rows = windows(data, self.length, self.batch, generator)
        is_replaced = torch.rand(rows.shape, generator=generator) < self.replaced
        others = data[torch.randint(len(data), rows.shape, generator=generator)]
        return torch.where(is_replaced, others, rows), rows


TASKS = {"gpt": GptTask, "digits": DigitsTask, "bert": BertTask}


@torch.no_grad()
def held_out_loss(task, model):
    """Returns the mean over the same batches for every run."""
    generator = torch.Generator().manual_seed(12345)
    model.eval()
    losses = [model(task.sample(generator, is_held_out=True)).item() for _ in range(HELD_OUT)]
    return math.fsum(losses) / len(losses)
