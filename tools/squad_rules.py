"""Reimplements the published SQuAD programs, as an oracle for tests and checks.

Scoring: evaluate-v1.1.py (Rajpurkar et al. 2016) and evaluate-v2.0.py (2018). Features and
answers: run_squad.py of BERT (Devlin et al. 2019). The caller provides the tokenizer.
"""

import collections
import math
import re
import string

ARTICLE = re.compile(r"\b(?:a|an|the)\b")
NO_PUNCTUATION = {ord(c): None for c in string.punctuation}


# --- scoring ---------------------------------------------------------------------------------


def answer_words(text):
    return ARTICLE.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()


def f1(predicted, answer):
    same = sum((collections.Counter(predicted) & collections.Counter(answer)).values())
    if same == 0:
        return 0
    precision, recall = same / len(predicted), same / len(answer)
    return (2 * precision * recall) / (precision + recall)


def f1_second(predicted, answer):
    return f1(predicted, answer) if predicted and answer else float(predicted == answer)


def questions_of(dataset):
    for article in dataset["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield paragraph["context"], question


def score_version1(dataset, predictions):
    exact = f1_sum = total = 0
    for _, question in questions_of(dataset):
        total += 1
        if question["id"] in predictions:
            predicted = answer_words(predictions[question["id"]])
            answers = [answer_words(a["text"]) for a in question["answers"]]
            exact += max(predicted == a for a in answers)
            f1_sum += max(f1(predicted, a) for a in answers)
    return {"exact_match": 100.0 * exact / total, "f1": 100.0 * f1_sum / total}


def plain_sum(values):
    """Adds like sum() before Python 3.12. Newer versions compensate rounding errors."""
    total = 0
    for value in values:
        total += value
    return total


def means(scores, ids, prefix=""):
    return {f"{prefix}exact": 100.0 * plain_sum(scores[i][0] for i in ids) / len(ids),
            f"{prefix}f1": 100.0 * plain_sum(scores[i][1] for i in ids) / len(ids),
            f"{prefix}total": len(ids)}


def best_threshold(raw, which, answerable, predictions, odds):
    score = best = sum(not a for a in answerable.values())
    threshold = 0.0
    for i in sorted(odds, key=odds.get):
        if i not in raw:
            continue
        score += raw[i][which] if answerable[i] else -bool(predictions[i])
        if score > best:
            best, threshold = score, odds[i]
    return 100.0 * best / len(raw), threshold


def score_version2(dataset, predictions, odds=None, threshold=1.0):
    """Questions without a prediction are left out of every mean. The official script leaves them
    out of the first three figures and fails on the others."""
    answerable, raw = {}, {}
    for _, question in questions_of(dataset):
        i = question["id"]
        answerable[i] = bool(question["answers"])
        answers = [w for a in question["answers"] if (w := answer_words(a["text"]))] or [[]]
        if i in predictions:
            predicted = answer_words(predictions[i])
            raw[i] = (int(max(predicted == a for a in answers)),
                      max(f1_second(predicted, a) for a in answers))
    final = {i: (float(not answerable[i]),) * 2 if odds and odds[i] > threshold else s
             for i, s in raw.items()}
    result = means(final, list(final))
    for prefix, wanted in (("HasAns_", True), ("NoAns_", False)):
        ids = [i for i in answerable if answerable[i] == wanted and i in final]
        if ids:
            result |= means(final, ids, prefix)
    if odds:
        for which, name in enumerate(("exact", "f1")):
            best, at = best_threshold(raw, which, answerable, predictions, odds)
            result |= {f"best_{name}": best, f"best_{name}_thresh": at}
    return result


# --- features --------------------------------------------------------------------------------


SEPARATORS = " \t\r\n\u202f"


def words_of(context):
    """Returns words, and for each character its word (for a separator: the word before)."""
    words, word_at, fresh = [], [], True
    for c in context:
        if c in SEPARATORS:
            fresh = True
        elif fresh:
            words.append(c)
            fresh = False
        else:
            words[-1] += c
        word_at.append(len(words) - 1)
    return words, word_at


def answer_in_words(words, word_at, answer):
    """Returns first and last word, or None if the published readers skip the example (or fail)."""
    start, text = answer["answer_start"], answer["text"]
    if not text or start < 0 or start + len(text) > len(word_at):
        return None
    first, last = word_at[start], word_at[start + len(text) - 1]
    if first < 0 or " ".join(text.split()) not in " ".join(words[first:last + 1]):
        return None
    return first, last


def windows_of(pieces, longest, stride):
    begin, windows = 0, []
    while begin < pieces:
        size = min(pieces - begin, longest)
        windows.append((begin, size))
        if begin + size == pieces:
            break
        begin += min(size, stride)
    return windows


def most_context(windows, piece):
    best, best_score = None, None
    for number, (begin, size) in enumerate(windows):
        if begin <= piece < begin + size:
            score = min(piece - begin, begin + size - 1 - piece) + 0.01 * size
            if best_score is None or score > best_score:
                best, best_score = number, score
    return best


class Features:
    """Windows of one question: their tokens, and the word and context of each position."""

    def __init__(self, tokenize, context, question, options):
        self.words, self.word_at = words_of(context)
        self.pieces, self.word_of_piece, self.first_piece = [], [], []
        for number, word in enumerate(self.words):
            self.first_piece.append(len(self.pieces))
            for piece in tokenize(word):
                self.pieces.append(piece)
                self.word_of_piece.append(number)
        self.asked = tokenize(question)[:options["max_question_length"]]
        self.windows = windows_of(len(self.pieces),
                                  options["max_sequence_length"] - len(self.asked) - 3,
                                  options["doc_stride"])

    def tokens(self, window):
        begin, size = self.windows[window]
        return ["[CLS]", *self.asked, "[SEP]", *self.pieces[begin:begin + size], "[SEP]"]

    def piece_at(self, window, position):
        begin, size = self.windows[window]
        piece = position - len(self.asked) - 2
        return begin + piece if 0 <= piece < size else None

    def max_context(self, window, position):
        piece = self.piece_at(window, position)
        return piece is not None and most_context(self.windows, piece) == window

    def answer_pieces(self, tokenize, first_word, last_word, text):
        first = self.first_piece[first_word]
        last = (self.first_piece[last_word + 1] if last_word + 1 < len(self.words)
                else len(self.pieces)) - 1
        wanted = " ".join(tokenize(text))
        for start in range(first, last + 1):
            for end in range(last, start - 1, -1):
                if " ".join(self.pieces[start:end + 1]) == wanted:
                    return start, end
        return first, last

    def label(self, window, span):
        """Returns the answer's positions in the window, or None if it is not wholly inside."""
        begin, size = self.windows[window]
        if span[0] < begin or span[1] >= begin + size:
            return None
        shift = len(self.asked) + 2 - begin
        return span[0] + shift, span[1] + shift


# --- answers ---------------------------------------------------------------------------------


def without_spaces(text):
    places = [i for i, c in enumerate(text) if c != " "]
    return places, {place: i for i, place in enumerate(places)}


def project(predicted, original, basic_words):
    """Finds the prediction in the original text, where `basic_words` is the basic tokenizer."""
    tokens = " ".join(basic_words(original))
    begin = tokens.find(predicted)
    if begin < 0:
        return original
    places, _ = without_spaces(original)
    token_places, number = without_spaces(tokens)
    first, last = number.get(begin), number.get(begin + len(predicted) - 1)
    if len(places) != len(token_places) or first is None or last is None:
        return original
    return original[places[first]:places[last] + 1]


def top(values, count):
    return sorted(range(len(values)), key=lambda i: values[i], reverse=True)[:count]


def spans_of(features, logits, options):
    """Returns (window, start, end, start logit, end logit) of possible answers, best first."""
    spans = []
    for window, (starts, ends) in enumerate(logits):
        end_order = top(ends, options["n_best"])
        for start in top(starts, options["n_best"]):
            for end in end_order:
                if (features.max_context(window, start) and end >= start
                        and features.piece_at(window, end) is not None
                        and end - start < options["max_answer_length"]):
                    spans.append((window, start, end, starts[start], ends[end]))
    return sorted(spans, key=lambda s: s[3] + s[4], reverse=True)


def rejoined(pieces):
    return " ".join(" ".join(pieces).replace(" ##", "").replace("##", "").split())


def n_best(features, logits, options, basic_words):
    """Returns [(text, probability, start logit, end logit)] by the published projection rule."""
    kept = {}
    for window, start, end, start_logit, end_logit in spans_of(features, logits, options):
        if len(kept) == options["n_best"]:
            break
        first, last = features.piece_at(window, start), features.piece_at(window, end)
        original = " ".join(features.words[features.word_of_piece[first]:
                                           features.word_of_piece[last] + 1])
        text = project(rejoined(features.pieces[first:last + 1]), original, basic_words)
        kept.setdefault(text, (start_logit, end_logit))
    kept = kept or {"": (0.0, 0.0)}
    largest = max(start + end for start, end in kept.values())
    weights = [math.exp(start + end - largest) for start, end in kept.values()]
    return [(text, weight / plain_sum(weights), *pair)
            for weight, (text, pair) in zip(weights, kept.items())]
