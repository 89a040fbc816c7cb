#!/usr/bin/env python3
"""Writes tests/squad/golden/features.json: windows, labels and answers of invented paragraphs by
the published rules (squad_rules.py), with Hugging Face's `tokenizers` on the vocabulary in
tests/text/golden. Needs a Python with the package `tokenizers`.
"""

import json

import squad_rules as rules
from make_squad_score_goldens import FILE
from squad_tokens import Tokens

OPTIONS = [
    {"max_sequence_length": 26, "doc_stride": 7, "max_question_length": 6, "n_best": 5,
     "max_answer_length": 6},
    {"max_sequence_length": 40, "doc_stride": 50, "max_question_length": 12, "n_best": 20,
     "max_answer_length": 30},
]
CONTEXTS = [
    "In the winter of 1866 a small school (founded 1851-52) stood near the River Ouse; its master, "
    "Mr. O'Brien, taught forty-two children. The school's bell, cast in 1790, weighs 3.5 tons.",
    "Caf\u00e9 \u0130stanbul\u202fwas opened by \u00c9mile\tand his sister\u2003Zo\u00eb.\r\nThey sold coffee for "
    "$0.05 a cup \u2014 cheap!",
    "one two three one two three one two three one two three one two three one two three one two "
    "three one two three four",
    "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3059\u3002 Tokyo is the capital\u200bof Japan.",
    "Short.",
]
# (context, question, answer, number of its earlier occurrences)
QUESTIONS = [
    (0, "When was the school founded?", "1851", 0), (0, "Where did it stand?", "near the River Ouse", 0),
    (0, "Who taught there?", "O'Brien", 0), (0, "How many children?", "forty-two", 0),
    (0, "How much does the very old bell of the little school near the river weigh?", "3.5 tons", 0),
    (0, "Which one?", "a small school (founded 1851-52) stood near the River Ouse; its master", 0),
    (1, "Who?", "\u00c9mile\tand his sister", 0), (1, "What?", "Caf\u00e9 \u0130stanbul", 0),
    (1, "How much?", "0.05", 0), (1, "Sister?", "Zo\u00eb", 0), (1, "Where?", "stanbul", 0),
    (2, "Number?", "two three", 5), (2, "Last?", "four", 0), (2, "First?", "one", 0),
    (2, "Third?", "three one", 3), (3, "Capital?", "Tokyo", 0),
    (3, "\u9996\u90fd?", "\u65e5\u672c", 0), (4, "Length?", "Short", 0),
]


def place_of(text, part, skipped):
    place = text.index(part)
    for _ in range(skipped):
        place = text.index(part, place + 1)
    return place


def dataset():
    paragraphs = [{"context": context, "qas": []} for context in CONTEXTS]
    for number, (context, text, answer, skipped) in enumerate(QUESTIONS):
        start = place_of(CONTEXTS[context], answer, skipped)
        paragraphs[context]["qas"].append(
            {"id": f"q{number:02}", "question": text,
             "answers": [{"text": answer, "answer_start": start}]})
    return {"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}


def logits_of(question, window, length):
    """Returns numbers that f32 represents exactly, with ties. The test has the same formula."""
    def at(side, i):
        return ((i * 7919 + window * 104729 + question * 1299709 + side * 15485863) % 1009) / 64
    return [[at(side, i) for i in range(length)] for side in range(2)]


def golden_of(tokens, options, number, context, question):
    features = rules.Features(tokens.pieces, context, question["question"], options)
    answer = question["answers"][0]
    first, last = rules.answer_in_words(features.words, features.word_at, answer)
    span = features.answer_pieces(tokens.pieces, first, last, answer["text"])
    windows, logits = [], []
    for window in range(len(features.windows)):
        sequence = features.tokens(window)
        best = [int(features.max_context(window, i)) for i in range(len(sequence))]
        windows.append({"tokens": " ".join(sequence), "label": features.label(window, span),
                        "max_context": "".join(map(str, best))})
        logits.append(logits_of(number, window, len(sequence)))
    best = rules.n_best(features, logits, options, tokens.words)
    return {"id": question["id"], "windows": windows,
            "n_best": [[text, probability, start, end] for text, probability, start, end in best]}


def main():
    tokens = Tokens(FILE.parent.parent / "text" / "golden" / "vocab.txt", cased=False)
    data = dataset()
    questions = list(enumerate(rules.questions_of(data)))
    content = {"dataset": data, "runs": [
        {"options": options,
         "questions": [golden_of(tokens, options, number, context, question)
                       for number, (context, question) in questions]} for options in OPTIONS]}
    (FILE / "features.json").write_text(json.dumps(content, indent=1) + "\n")
    print(sum(len(q["windows"]) for run in content["runs"] for q in run["questions"]), "windows")


if __name__ == "__main__":
    main()
