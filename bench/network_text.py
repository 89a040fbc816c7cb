"""A token store for measuring steps: random words of a vocabulary as large as BERT's."""

import random
import subprocess

from bert_shapes import VOCABULARY

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def make_store(program, folder, documents=1500):
    """Returns the store's folder. Creates the store if it does not exist."""
    store = folder / "corpus"
    if (store / "vocab.txt").exists():
        return store
    folder.mkdir(parents=True, exist_ok=True)
    words = [f"w{number}" for number in range(VOCABULARY - len(SPECIAL))]
    (folder / "vocab.txt").write_text("\n".join((*SPECIAL, *words)) + "\n")
    draw = random.Random(1)
    with open(folder / "text.txt", "w", encoding="utf-8") as text:
        for _ in range(documents):
            for _ in range(30):
                text.write(" ".join(draw.choices(words, k=draw.randint(8, 24))) + "\n")
            text.write("\n")
    subprocess.run([program, "prepare", "--input", folder / "text.txt", "--output", store,
                    "--format", "lines", "--vocab", folder / "vocab.txt"], check=True)
    return store
