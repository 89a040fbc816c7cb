"""Finds the text that is closest to a question: vectors and their inner products.

    python examples/python/encode.py MODEL "a question" FILE      # FILE: a text in every line
"""

import sys

import onebit

if len(sys.argv) != 4:
    sys.exit(__doc__)
model, question, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    texts = [line.strip() for line in file if line.strip()]

encoder = onebit.Encoder(model, normalize=True)
print(f"{model}: {encoder.description}")
closeness = encoder.encode(texts) @ encoder.encode([question])[0]
for place in closeness.argsort()[::-1][:5]:
    print(f"{closeness[place]:.3f}  {texts[place]}")
