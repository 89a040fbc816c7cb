"""The examples of examples/python, and the code of docs/python.md, run."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import onebit
from conftest import sentence, write

ROOT = pathlib.Path(__file__).parents[3]


def python(*words, cwd):
    done = subprocess.run([sys.executable, *map(str, words)], cwd=cwd, capture_output=True, text=True,
                          check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_encode(folder, pretrained, tmp_path):
    texts = write(tmp_path / "texts.txt", "".join(f"{sentence(i)}\n" for i in range(9)))
    output = python(ROOT / "examples/python/encode.py", pretrained, sentence(3), texts, cwd=tmp_path)
    assert output.splitlines()[1] == f"1.000  {sentence(3)}"


def test_pretrain(folder, pretrained, tmp_path):
    output = python(ROOT / "examples/python/pretrain.py", folder / "text.txt", tmp_path / "made", 3,
                    cwd=tmp_path)
    assert "step 3" in output and (tmp_path / "made/run/latest").exists()


# Every block of Python in the page, with folders of the names that it uses.
def test_the_page_runs(folder, all_models, tmp_path):
    for name, target in {"model": "run", "run": "run", "store": "store", "classifier": "classify",
                         "tagger": "tag", "squad": "squad", "text.txt": "text.txt",
                         "recipe.json": "recipe.json"}.items():
        os.symlink(folder / target, tmp_path / name)
    page = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        if "torch" in block:
            continue
        python("-c", "import onebit\n" + block, cwd=tmp_path)
