"""Writes examples of three fine-tuning tasks as files that `onebit` reads, and scores predictions.

classify: verses of the King James text, labelled with one of its six parts. tag: sentences of
CoNLL-2003. embed: questions of a SQuAD file and their paragraphs. Development examples come from
other chapters, other news and other documents than training examples.
"""

import json
import random
import re
import statistics

TASKS = ("classify", "tag", "embed")
ENDINGS = {"classify": "tsv", "tag": "conll", "embed": "jsonl"}
SIZES = {"classify": (1024, 512), "tag": (1504, 400), "embed": (192, 160)}  # to train on, to score
EPOCHS = 1
RATES = {"classify": 3e-4, "tag": 5e-4, "embed": 5e-5}  # the highest learning rate
BATCH = {"classify": 32, "tag": 32, "embed": 16}
LIMIT = 256  # of tokens
PARTS = {
    "law": "Ge Exo Lev Num Deu",
    "history": "Josh Jdgs Ruth 1Sm 2Sm 1Ki 2Ki 1Chr 2Chr Ezra Neh Est",
    "poetry": "Job Psa Prv Eccl SSol",
    "gospels": "Mat Mark Luke John Acts",
    "letters": "Rom 1Cor 2Cor Gal Eph Phi Col 1Th 2Th 1Tim 2Tim Titus Phmn Heb Jas 1Pet 2Pet 1Jn "
               "2Jn 3Jn Jude Rev"}
PART_OF = {book: part for part, books in PARTS.items() for book in books.split()}
VERSE = re.compile(r"\s*((\d?[A-Za-z]+)\d+):\d+\s+(.*\S)")


def verses(path):
    """Yields (chapter, {"text", "label"}) of each verse."""
    for line in path.read_text(encoding="utf-8").splitlines():
        chapter, book, text = VERSE.match(line).groups()
        yield chapter, {"text": text, "label": PART_OF.get(book, "prophets")}


def classify_examples(path):
    groups = {}
    for chapter, verse in verses(path("verses.txt")):
        groups.setdefault(chapter, []).append(verse)
    return by_group(groups, SIZES["classify"])


def sentences(path, wanted):
    found = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split() for line in block.splitlines()]
        if rows and rows[0][0] != "-DOCSTART-":
            found.append({"tokens": [row[0] for row in rows], "tags": [row[-1] for row in rows]})
    return found[:wanted]


def tag_examples(path):
    train, dev = SIZES["tag"]
    return sentences(path("train.txt"), train), sentences(path("valid.txt"), dev)


def embed_examples(path):
    groups = {}
    for article in json.loads(path("xquad.en.json").read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            groups.setdefault(article["title"], []).extend(
                {"query": " ".join(question["question"].split()),
                 "positive": " ".join(paragraph["context"].split())}
                for question in paragraph["qas"])
    return by_group(groups, SIZES["embed"])


def by_group(groups, sizes):
    """Takes a random fifth of the groups for development. Draws `sizes` examples of both parts."""
    names = sorted(groups)
    chance = random.Random(2018)
    chance.shuffle(names)
    parts = ([e for n in names[len(names) // 5:] for e in groups[n]],
             [e for n in names[:len(names) // 5] for e in groups[n]])
    return [chance.sample(part, min(size, len(part))) for part, size in zip(parts, sizes)]


def write(path, task, examples):
    with path.open("w", encoding="utf-8") as file:
        if task == "classify":
            file.write("text\tlabel\n")
            file.writelines(f"{e['text']}\t{e['label']}\n" for e in examples)
        elif task == "tag":
            for e in examples:
                file.writelines(f"{word} {tag}\n" for word, tag in zip(e["tokens"], e["tags"]))
                file.write("\n")
        else:
            file.writelines(json.dumps(e, ensure_ascii=False) + "\n" for e in examples)


def make(task, path):
    """Returns training and development examples. path(name) finds a file in the data folders."""
    return {"classify": classify_examples, "tag": tag_examples, "embed": embed_examples}[task](path)


def labels_of(task, examples):
    """Returns the labels in the order of onebit's outputs."""
    if task == "embed":
        return []
    if task == "classify":
        return sorted({e["label"] for e in examples})
    return ["O", *sorted({tag for e in examples for tag in e["tags"]} - {"O"})]


def f1(right, found, true):
    return 2 * right / (found + true) if found + true else 0.0


def classify_scores(examples, predicted):
    truth = [e["label"] for e in examples]
    pairs = list(zip(truth, predicted))
    by_label = [f1(pairs.count((label, label)), predicted.count(label), truth.count(label))
                for label in sorted(set(truth) | set(predicted))]
    return {"accuracy": sum(t == p for t, p in pairs) / len(pairs),
            "f1_macro": statistics.mean(by_label)}


def entities(tags):
    """Returns {(type, first word, end)}, by the rules of conlleval for tags with B- and I-."""
    found, kind, start = set(), None, 0
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, kind_here = tag.partition("-")
        if kind and (prefix != "I" or kind_here != kind):
            found.add((kind, start, place))
            kind = None
        if prefix != "O" and kind is None:
            kind, start = kind_here, place
    return found


def tag_scores(examples, predicted):
    right = found = true = words = right_words = 0
    for example, tags in zip(examples, predicted):
        ours, theirs = entities(tags), entities(example["tags"])
        right, found, true = right + len(ours & theirs), found + len(ours), true + len(theirs)
        words += len(tags)
        right_words += sum(a == b for a, b in zip(tags, example["tags"]))
    return {"f1": f1(right, found, true), "accuracy": right_words / words}


def paragraphs_of(examples):
    return list(dict.fromkeys(e["positive"] for e in examples))


def embed_scores(examples, vectors):
    """Scores (vectors of questions, vectors of distinct paragraphs), both of length 1."""
    queries, candidates = vectors
    number = {text: i for i, text in enumerate(paragraphs_of(examples))}
    cosines = queries @ candidates.T
    ranks = []
    for row, example in zip(cosines, examples):
        own = number[example["positive"]]
        ranks.append(int((row >= row[own]).sum()))
    return {"mrr": statistics.mean(1 / rank for rank in ranks),
            "accuracy": ranks.count(1) / len(ranks)}


SCORES = {"classify": classify_scores, "tag": tag_scores, "embed": embed_scores}
