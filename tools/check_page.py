#!/usr/bin/env python3
"""Tries the page of `onebit serve` in headless Chromium, and compares it with the HTTP interface.

  check_page.py PROGRAM [--chromium FILE] [--screenshots FOLDER] [--sentence-model FOLDER]
                                              (pip install playwright pillow torch transformers)

Makes a small model of random values of each kind, drives the page as a reader does, and asserts that
it shows the numbers, labels, places and tokens of the interface, that its curl command gives the
same answer, that a text with markup is shown as text, that nothing is asked for elsewhere, that the
keyboard is enough, that it fits a phone, and that it asks for a key where there is one.
--screenshots writes pictures of each kind, light and dark. --sentence-model serves a real model
instead of the random one, so that the pictures show sensible numbers.
"""
import argparse
import contextlib
import json
import os
import re
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import torch
import transformers
from PIL import Image
from playwright.sync_api import sync_playwright

EVIL = "<script>window.hacked=1</script> & <img src=x onerror='window.hacked=1'> it's \U0001f600 Rome"
WORDS = ("ada lovelace was born in london . she wrote about engines where ? what a wonderful day the "
         "capital of france is someone makes music man playing guitar penguins live south pen tool "
         "for writing do query").split()
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def make_models(folder, sentence_model):
    """Writes a folder of each kind and returns them by name."""
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    vocabulary = list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters,
                                     *["##" + letter for letter in letters if letter.isalnum()]]))
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in vocabulary), encoding="utf-8")
    torch.manual_seed(5)
    transformers.utils.logging.disable_progress_bar()

    def make(name, kind, labels=()):
        config = transformers.BertConfig(
            vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=64, max_position_embeddings=128, initializer_range=0.5)
        if labels:
            config.id2label = dict(enumerate(labels))
            config.label2id = {label: i for i, label in enumerate(labels)}
        getattr(transformers, "BertFor" + kind if kind else "BertModel")(config).save_pretrained(
            folder / name)
        transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / name)
        return folder / name

    return {"search": sentence_model or make("search", ""),
            "mood": make("mood", "SequenceClassification", ["happy", "sad", "<b>neither</b>"]),
            "rank": make("rank", "SequenceClassification", ["score"]),
            "names": make("names", "TokenClassification", TAGS),
            "questions": make("questions", "QuestionAnswering"),
            "words": make("words", "MaskedLM")}


@contextlib.contextmanager
def server(given, models, key=""):
    command = [given.program, "serve", "--port", "0", "--threads", "1", "--device", "cpu"]
    for name, folder in models.items():
        command += ["--model", f"{name}={folder}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "ONEBIT_API_KEY": key} if key else None)
    log = []
    for line in process.stderr:
        log.append(line)
        if found := re.match(r"serving on (http:\S+)", line):
            break
    else:
        raise AssertionError("the server did not start: " + "".join(log))
    try:
        yield found[1]
    finally:
        process.terminate()
        process.communicate()


def ask(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


class Page:
    """The page in a browser, and what it must not do."""

    def __init__(self, browser, url, **options):
        self.url, self.problems = url, []
        self.page = browser.new_context(**options).new_page()
        self.page.on("console", lambda message: self.problems.append(message.text)
                     if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: None if request.url.startswith((url, "data:"))
                     else self.problems.append("asks for " + request.url))
        self.page.goto(url + "/")

    def choose(self, name):
        value = self.page.locator("#model option", has_text=name).get_attribute("value")
        self.page.select_option("#model", value)

    def run(self, fields):
        for name, text in fields.items():
            self.page.fill(f"#field-{name}", text)
        self.page.click("#run")
        self.page.wait_for_selector("#run:not([disabled])")

    def texts(self, selector):
        return self.page.locator(selector).all_text_contents()

    def scores(self):
        return [float(one.get_attribute("data-score"))
                for one in self.page.locator("#result .number").all()]

    def finish(self):
        assert self.page.evaluate("window.hacked") is None, "a text ran as a script"
        assert not self.problems, self.problems
        self.page.context.close()


def near(found, wanted):
    assert len(found) == len(wanted), (found, wanted)
    assert all(abs(a - b) < 1e-6 for a, b in zip(found, wanted)), (found, wanted)


def read_sequences(name, values):
    """What the model reads: two texts as one sequence, or each alone."""
    if name == "rank":
        return [[values[0], line] for line in values[1].split("\n")]
    return [values] if name in ("mood", "questions") else [[value] for value in values]


def check_kind(page, name, fields, path, body, compare):
    """Runs a form and compares what it shows with the interface's answer."""
    page.choose(name)
    page.run(fields)
    assert page.page.is_visible("#result"), page.texts("#error")
    wanted = ask(page.url, path, {**body, "model": name})
    compare(wanted)
    # A script, so that a shell reads the command as a person's does.
    command = page.texts("#curl")[0]
    copied = subprocess.run(["bash", "-c", command.replace("curl ", "curl -s ", 1)],
                            capture_output=True, text=True, check=True)
    assert json.loads(copied.stdout) == wanted, command
    rows = page.page.locator("#tokens > div")
    sequences = read_sequences(name, [value for value in fields.values() if value])
    assert rows.count() == len(sequences), (rows.count(), sequences)
    for i, texts in enumerate(sequences):
        tokens = ask(page.url, "/tokenize", {"inputs": [texts], "model": name})[0]
        assert sum(one["special"] for one in tokens) == len(texts) + 1, tokens
        assert rows.nth(i).locator("span").all_text_contents() == [one["text"] for one in tokens]
    # As many as the model computed, where nothing was cut.
    shown = page.page.locator("#tokens span").count()
    assert str(shown) == page.texts("#times dd")[-1], (shown, page.texts("#times dd"))
    assert any(float(time.split()[0]) > 0 for time in page.texts("#times dd")), "no time is shown"


def check_kinds(page):
    other = "Where was Ada Lovelace born?"

    def labels(wanted):
        assert page.texts("#result .name") == [one["label"] for one in wanted]
        near(page.scores(), [one["score"] for one in wanted])

    def ranks(wanted):
        assert page.texts("#result .name") == [one["text"] for one in wanted]
        near(page.scores(), [one["score"] for one in wanted])

    def tags(wanted):
        characters = list(EVIL)
        # The label is in the mark, too.
        assert page.texts("#result mark") == [
            "".join(characters[one["start"]:one["end"]]) + one["label"] for one in wanted]
        near(page.scores(), [one["score"] for one in wanted])
        whole = page.page.evaluate(
            "(() => { const copy = document.querySelector('#result .text').cloneNode(true);"
            "copy.querySelectorAll('small').forEach(one => one.remove()); return copy.textContent })()")
        assert whole == EVIL, whole

    def answers(wanted):
        assert page.texts("#result mark") == ([wanted["answers"][0]["answer"]] if wanted["answer"]
                                              else [])
        near(page.scores(), [one["score"] for one in wanted["answers"]])

    def words(wanted):
        assert page.texts("#result .name") == [one["token_str"] for mask in wanted for one in mask]
        near(page.scores(), [one["score"] for mask in wanted for one in mask])

    check_kind(page, "search", {"first": EVIL, "second": other}, "/similarity",
               {"inputs": {"source_sentence": EVIL, "sentences": [other]}},
               lambda wanted: near(page.scores(), wanted))
    check_kind(page, "mood", {"first": EVIL, "second": ""}, "/predict", {"inputs": EVIL}, labels)
    check_kind(page, "mood", {"first": EVIL, "second": other}, "/predict",
               {"inputs": [EVIL, other]}, labels)
    check_kind(page, "rank", {"query": other, "texts": f"{EVIL}\nPenguins live in the south."},
               "/rerank", {"query": other, "texts": [EVIL, "Penguins live in the south."],
                           "return_text": True}, ranks)
    check_kind(page, "names", {"sentence": EVIL}, "/tag", {"inputs": EVIL}, tags)
    check_kind(page, "questions", {"question": other, "context": EVIL}, "/answer",
               {"question": other, "context": EVIL, "top_n": 3}, answers)
    check_kind(page, "words", {"text": f"[MASK] {EVIL} [MASK]"}, "/fill",
               {"inputs": f"[MASK] {EVIL} [MASK]"}, words)


def check_errors(page):
    page.choose("search")
    page.run({"first": "", "second": "a"})
    assert page.texts("#error")[0].startswith("400: "), page.texts("#error")
    assert not page.page.is_visible("#result")
    page.choose("words")
    page.run({"text": EVIL})
    assert "has no [MASK]" in page.texts("#error")[0]
    # The refusals above, which a browser writes on its console.
    assert all("status of 4" in problem for problem in page.problems), page.problems
    page.problems.clear()


def check_keyboard(page):
    page.choose("mood")
    page.page.focus("#model")
    order = []
    for _ in range(3):
        page.page.keyboard.press("Tab")
        order.append(page.page.evaluate("document.activeElement.id"))
    assert order == ["field-first", "field-second", "run"], order
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#result:visible")
    page.choose("mood")
    page.page.focus("#field-first")
    page.page.keyboard.press("Control+Enter")
    page.page.wait_for_selector("#result:visible")
    unlabelled = page.page.evaluate(
        "[...document.querySelectorAll('textarea, select, input')].filter(e => !e.labels.length)"
        ".map(e => e.id)")
    assert not unlabelled, unlabelled


def check_phone(browser, url):
    page = Page(browser, url, viewport={"width": 360, "height": 700})
    page.choose("names")
    page.run({"sentence": "a" * 200 + " " + EVIL})
    width = page.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360, f"the page is {width} pixels wide on a phone"
    page.finish()


def check_without_script(browser, url):
    page = Page(browser, url, java_script_enabled=False)
    text = page.page.inner_text("body")
    assert "search: vectors of texts" in text and "curl ADDRESS/answer" in text, text
    page.finish()


def check_key(browser, given, models):
    with server(given, {"mood": models["mood"]}, "right-key") as url:
        page = Page(browser, url)
        page.page.wait_for_selector("#key:visible")
        assert "mood" not in page.page.content()
        for key in ("wrong-key", "right-key"):
            page.page.fill("#key", key)
            page.page.keyboard.press("Tab")
            page.page.wait_for_selector("#error:visible" if key == "wrong-key" else "#form:visible")
        page.run({"first": "a day"})
        assert page.texts("#result .name"), "no labels"
        assert '"Authorization: Bearer $ONEBIT_API_KEY"' in page.texts("#curl")[0]
        assert "right-key" not in page.texts("#curl")[0]
        assert all("status of 401" in problem for problem in page.problems), page.problems
        page.problems.clear()
        page.finish()


def take_screenshots(browser, url, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        page = Page(browser, url, color_scheme=scheme, viewport={"width": 640, "height": 760})
        background = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
        for name in ("search", "mood", "rank", "names", "questions", "words"):
            page.choose(name)
            page.run({})
            assert page.page.is_visible("#result"), page.texts("#error")
            file = folder / f"serve_page_{name}_{scheme}.png"
            page.page.screenshot(path=file, full_page=True)
            # 64 colours are enough for text and bars, and a third of the size.
            Image.open(file).convert("RGB").quantize(64).save(file, optimize=True)
        page.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--chromium", help="default: the one of playwright")
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--sentence-model", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        models = make_models(Path(folder), given.sentence_model)
        browser = playwright.chromium.launch(
            executable_path=given.chromium, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        with server(given, models) as url:
            page = Page(browser, url)
            page.page.wait_for_selector("#form:visible")
            check_kinds(page)
            check_errors(page)
            check_keyboard(page)
            page.finish()
            check_phone(browser, url)
            check_without_script(browser, url)
            if given.screenshots:
                take_screenshots(browser, url, given.screenshots)
        check_key(browser, given, models)
        print(f"{len(models)} kinds of models, errors, keyboard, phone, no script, key: right")


if __name__ == "__main__":
    main()
