#!/usr/bin/env python3
"""Draws the pictures of the documents: SVG files that follow the reader's light or dark scheme.

The pictures are narrow, so that their words can be read on a phone.
tests/tree/checks_test.py compares the files in docs/ with what this script draws.
Usage: draw_pictures.py [FOLDER]   (default: docs/)
"""
import sys
from html import escape
from pathlib import Path

import check_floors
from cpp_source import ROOT

WIDTH = 600
FONT = 15
# The fill and the edge of a kind of box: in light, in dark.
KINDS = {
    "plain": (("#f6f8fa", "#afb8c1"), ("#21262d", "#6e7681")),
    "compute": (("#ddf4ff", "#54aeff"), ("#0c2d6b", "#388bfd")),
    "send": (("#fff1e5", "#fb8f44"), ("#5a1e02", "#db6d28")),
    "owner": (("#dafbe1", "#4ac26b"), ("#033a16", "#2ea043")),
    "disk": (("#fbefff", "#c297ff"), ("#3c1e70", "#8957e5")),
}
INK = {"page": ("#ffffff", "#0d1117"), "ink": ("#1f2328", "#e6edf3"), "faint": ("#59636e", "#b1bac4")}


def style():
    """Returns the rules of every class, for both schemes."""
    def rules(scheme):
        lines = [f".{name}{{fill:{colours[scheme]}}}" for name, colours in INK.items()]
        lines.append(f".line{{stroke:{INK['faint'][scheme]};fill:none}}")
        for name, schemes in KINDS.items():
            fill, edge = schemes[scheme]
            lines.append(f".{name}{{fill:{fill};stroke:{edge}}}")
        return "".join(lines)
    return (f"<style>text{{font-family:system-ui,sans-serif;font-size:{FONT}px}}"
            ".small{font-size:13px}.bold{font-weight:600}.code{font-family:ui-monospace,monospace;"
            f"font-size:13px}}{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}</style>")


class Picture:
    """Collects the parts of one picture. Places are in pixels from the upper left corner."""

    def __init__(self, height, title):
        self.height, self.title, self.parts = height, title, []

    def text(self, x, y, text, words="ink", anchor="start"):
        self.parts.append(f'<text x="{x}" y="{y}" class="{words}" text-anchor="{anchor}">'
                          f"{escape(text)}</text>")

    def box(self, x, y, width, height, kind, *lines, words="ink"):
        """A box with lines of text in its middle."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" '
                          f'class="{kind}"/>')
        first = y + height / 2 + 5 - 9 * (len(lines) - 1)
        for row, line in enumerate(lines):
            self.text(x + width / 2, first + 18 * row, line, words, "middle")

    def line(self, *points, arrow=True, dashed=False):
        places = " ".join(f"{x},{y}" for x, y in points)
        marks = ' marker-end="url(#arrow)"' if arrow else ""
        marks += ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(f'<polyline points="{places}" class="line" stroke-width="1.5"{marks}/>')

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
            f'width="{WIDTH}" height="{self.height}" role="img">',
            f"<title>{escape(self.title)}</title>", style(),
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" class="faint"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{self.height}" class="page"/>', *self.parts, "</svg>", ""])


def step():
    """One step: what the main thread computes, and what the exchange thread sends meanwhile."""
    picture = Picture(390, "One training step in two lanes: the main thread and the exchange thread")
    picture.text(10, 24, "main thread: computes", "ink bold")
    picture.box(10, 36, 84, 44, "compute", "forward")
    for index, name in enumerate(["heads", "layer n", "...", "layer 1", "words"]):
        left = 98 + 68 * index
        picture.box(left, 36, 66, 44, "compute", name, words="ink small")
        picture.line((left + 67, 80), (left + 67, 124), dashed=True, arrow=False)
        picture.box(left + 68, 104, 66, 40, "send", f"bucket {index + 1}", words="ink small")
    picture.text(436, 24, "backward pass, last layer first", "faint small", "end")
    picture.box(512, 36, 78, 44, "compute", "update")
    picture.line((504, 124), (551, 124), (551, 82))
    picture.text(10, 116, "exchange thread:", "ink bold small")
    picture.text(10, 136, "sends what is ready", "faint small")
    picture.text(10, 196, "a bucket after the freeze: one bit per element in both directions", "ink bold")
    picture.text(10, 236, "this rank", "faint small")
    picture.box(80, 212, 130, 40, "compute", "normalize: g / d", words="ink small")
    picture.box(230, 212, 110, 40, "send", "signs", words="ink small")
    picture.box(400, 212, 190, 40, "compute", "move the values", words="ink small")
    picture.line((210, 232), (228, 232))
    picture.text(10, 320, "owner of", "faint small")
    picture.text(10, 336, "a chunk", "faint small")
    picture.box(80, 302, 130, 40, "owner", "average of ranks", words="ink small")
    picture.box(230, 302, 150, 40, "owner", "momentum and lead", words="ink small")
    picture.box(400, 302, 110, 40, "send", "signs", words="ink small")
    picture.line((285, 252), (285, 277), (145, 277), (145, 300))
    picture.line((210, 322), (228, 322))
    picture.line((380, 322), (398, 322))
    picture.line((455, 302), (455, 254))
    picture.text(215, 271, "to the owners", "faint small", "middle")
    picture.text(466, 283, "to all ranks", "faint small")
    picture.text(10, 374, "What a sign cannot say stays on its sender as a residual and is added the next time.",
                 "faint small")
    return picture


def wings():
    """The seven wings of the source tree, the highest first."""
    subjects = {"program": "what a user starts",
                "apps": "an application is one floor",
                "training": "what every run shares",
                "exchange": "gradients between ranks, state on disks",
                "math": "one pass: no ranks, no files",
                "data": "everything read from people and programs",
                "ground": "figures, keys, files, errors"}
    floors = {}
    for floor, row in check_floors.read_rows(ROOT).items():
        floors.setdefault(row.wing, []).append(floor)
    picture = Picture(24 + 66 * len(floors) + 26, "The seven wings of onebit and their floors")
    kinds = ["plain", "compute", "compute", "send", "owner", "disk", "plain"]
    for index, (wing, kind) in enumerate(zip(floors, kinds, strict=True)):
        y = 14 + 66 * index
        picture.box(10, y, 580, 56, kind)
        picture.text(24, y + 34, wing, "ink bold")
        picture.text(120, y + 24, " ".join(floors[wing]), "ink code")
        picture.text(120, y + 44, subjects[wing], "faint small")
        if index:
            picture.line((60, y - 10), (60, y - 1))
    picture.text(10, picture.height - 12, "A wing includes only wings below it, a floor only floors listed for it.",
                 "faint small")
    return picture


def launch():
    """The processes of `onebit launch` on its machine and on two hosts."""
    picture = Picture(420, "The processes of onebit launch on its machine and on two hosts")
    picture.box(150, 12, 300, 92, "plain")
    picture.text(162, 34, "your machine, or one of the hosts", "faint small")
    picture.box(162, 46, 130, 44, "owner", "onebit launch")
    picture.box(330, 46, 108, 44, "send", "mpirun")
    picture.line((292, 68), (328, 68))
    for index, host in enumerate(("node1", "node2")):
        x = 10 + 300 * index
        picture.box(x, 156, 280, 226, "plain")
        picture.text(x + 268, 178, host, "ink bold", "end")
        picture.box(x + 12, 190, 78, 178, "owner", "watch")
        picture.box(x + 104, 190, 164, 30, "send", "MPI's daemon", words="ink small")
        for rank in range(2):
            y = 240 + 68 * rank
            picture.box(x + 104, y, 72, 60, "owner", "guard")
            picture.box(x + 196, y, 72, 60, "compute", f"rank {2 * index + rank}")
            picture.line((x + 176, y + 30), (x + 194, y + 30))
        picture.line((x + 140, 220), (x + 140, 238))
    picture.line((200, 90), (200, 132), (61, 132), (61, 188))
    picture.line((240, 90), (240, 126), (361, 126), (361, 188))
    picture.text(70, 150, "ssh", "faint small")
    picture.text(370, 122, "ssh", "faint small")
    picture.line((400, 90), (400, 142), (160, 142), (160, 188), dashed=True)
    picture.line((420, 90), (420, 142), (470, 142), (470, 188), dashed=True)
    picture.line((242, 368), (242, 394), (542, 394), (542, 370), arrow=False)
    picture.text(392, 412, "gradients: MPI between the ranks", "faint small", "middle")
    return picture


def checkpoint():
    """A checkpoint of four ranks over the disks of two hosts, with a copy of every shard."""
    picture = Picture(392, "A checkpoint of four ranks over two disks")
    for index, host in enumerate(("node1", "node2")):
        x = 10 + 300 * index
        own, others = ((0, 1), (2, 3)) if index == 0 else ((2, 3), (0, 1))
        picture.box(x, 12, 280, 300, "plain")
        picture.text(x + 12, 34, f"disk of {host}", "ink bold")
        picture.text(x + 12, 56, "runs/mini/global_step400/", "ink code")
        picture.box(x + 12, 68, 256, 34, "owner", "model/", words="ink code")
        picture.box(x + 12, 108, 256, 34, "owner", "state.json", words="ink code")
        for row, rank in enumerate(own):
            picture.box(x + 12, 154 + 36 * row, 256, 30, "compute",
                        f"optimizer-{rank:05}-of-00004", words="ink code")
        for row, rank in enumerate(others):
            picture.box(x + 12, 236 + 36 * row, 256, 30, "disk",
                        f"optimizer-{rank:05}-of-00004", words="ink code")
    picture.line((278, 185), (300, 185), (300, 266), (318, 266))
    picture.line((322, 185), (306, 185), (306, 272), (282, 272))
    for row, (kind, words) in enumerate((("owner", "the same bytes on every disk"),
                                         ("compute", "state of the host's own ranks"),
                                         ("disk", "copies with --checkpoint-copies 2"))):
        picture.box(10 + 12, 324 + 22 * row, 22, 14, kind)
        picture.text(54, 336 + 22 * row, words, "ink small")
    picture.text(310, 336, "Either disk alone can resume the run.", "faint small")
    return picture


def block():
    """A block of signs on the wire: header, scales and signs."""
    picture = Picture(292, "A block of 2,048 signs on the wire: a header of 8 bytes and 256 bytes of signs")
    picture.text(10, 24, "2,048 elements of f32: 8,192 bytes", "ink bold")
    for index in range(8):
        picture.box(10 + 72.5 * index, 36, 70, 34, "compute", "256", words="ink small")
    picture.text(10, 90, "eight sub-blocks, each with a scale of its own", "faint small")
    picture.line((300, 98), (300, 122))
    picture.text(312, 115, "1/31 of the bytes", "faint small")
    picture.text(10, 146, "on the wire: 264 bytes", "ink bold")
    picture.box(10, 158, 76, 44, "send", "base", "2 bytes", words="ink small")
    picture.box(88, 158, 76, 44, "disk", "extra", "2 bytes", words="ink small")
    picture.box(166, 158, 100, 44, "owner", "8 codes", "4 bytes", words="ink small")
    picture.box(268, 158, 322, 44, "compute", "2,048 signs", "256 bytes", words="ink small")
    picture.text(10, 228, "base: the largest scale, in bf16", "ink small")
    picture.text(10, 248, "extra: one bf16 number that is averaged over ranks", "ink small")
    picture.text(10, 268, "code k of a sub-block: its scale is base times 2^(-k / 2), or too small to send if k is 15",
                 "ink small")
    return picture


PICTURES = {"step": step, "wings": wings, "launch": launch, "checkpoint": checkpoint, "block": block}


def main(folder=ROOT / "docs"):
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
