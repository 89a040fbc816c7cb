"""The picture of bench/network.py: samples per second by the rate of the links."""

import math
import re

# The colours of the modes. dense16 has the ink's colour, which follows the reader's scheme.
COLOURS = {"dense16": "", "onebit": "#d55e00",
           "onebit-clip": "#e69f00", "onebit-two": "#009e73", "ddp": "#3584c4", "ddp-fp16": "#56b4e9"}
NAMES = {"dense16": "16 bits", "onebit": "1 bit", "onebit-clip": "1 bit, clipped",
         "onebit-two": "1 bit, two levels", "ddp": "PyTorch DDP", "ddp-fp16": "PyTorch DDP, fp16 hook"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 600, 330, 48, 12, 64, 36  # narrow, for phones
ROW = 22  # of the legend
STYLE = ("<style>text{font-family:system-ui,sans-serif;font-size:16px;fill:#1f2328}.page{fill:#fff}"
         ".grid{stroke:#d1d9e0}.mark{stroke:#1f2328;stroke-width:3}.dot{fill:#1f2328}"
         ".small{font-size:14px}.bold{font-weight:600}@media(prefers-color-scheme:dark){text,.dot{fill:#e6edf3}.page{fill:#0d1117}"
         ".grid{stroke:#3d444d}.mark{stroke:#e6edf3}}</style>")


def ticks(low, high):
    """Returns the numbers of 1, 2, 5, 10, ... around the values."""
    power = math.floor(math.log10(low))
    steps = [digit * 10.0 ** exponent for exponent in range(power, power + 8)
             for digit in (1, 2, 5)]
    first = max(step for step in steps if step <= low)
    last = min(step for step in steps if step >= high)
    return [step for step in steps if first <= step <= last]


def words_of(rate):
    """Returns "200M" for "200mbit"."""
    found = re.fullmatch(r"([\d.]+)([kmg])bit", rate)
    return found[1] + found[2].upper() if found else "no limit"


def picture(points, title, colours=COLOURS, names=NAMES):
    """`points`: {(mode, ranks): [(name of the rate, position from 0 to 1, samples per second)]}.
    A mode without a colour has the ink's. The part of the title after ": " is its second line."""
    rates = [rate for line in points.values() for _, _, rate in line]
    marks = ticks(min(rates), max(rates))
    low, high = math.log(marks[0]), math.log(marks[-1])

    def place(at, rate):
        x = LEFT + (WIDTH - LEFT - RIGHT) * (0.06 + 0.88 * at)
        y = TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log(rate)) / (high - low or 1)
        return f"{x:.1f}", f"{y:.1f}"

    height = HEIGHT + ROW * ((len(points) + 1) // 2) + 6
    headline, _, line_below = title.partition(": ")
    several = len({ranks for _, ranks in points}) > 1
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             f'width="{WIDTH}" height="{height}" role="img"><title>{title}</title>{STYLE}'
             '<rect width="100%" height="100%" class="page"/>',
             f'<text x="8" y="20" class="bold">{headline}</text>'
             f'<text x="8" y="42" class="small">{line_below}</text>'
             f'<text x="8" y="{HEIGHT - 12}" class="small">bit/s</text>']
    for mark in marks:
        _, y = place(0, mark)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" class="grid"/>'
                     f'<text x="{LEFT - 8}" y="{y}" dy="5" text-anchor="end">{mark:g}</text>')
    free_from = 0.0  # names that would touch the one before are left out
    for name, at in sorted({(name, at) for line in points.values() for name, at, _ in line},
                           key=lambda entry: entry[1]):
        x, _ = place(at, marks[0])
        if float(x) - 25 >= free_from:
            parts.append(f'<text x="{x}" y="{HEIGHT - 12}" text-anchor="middle" class="small">'
                         f"{words_of(name)}</text>")
            free_from = float(x) + 25
    for row, ((mode, ranks), line) in enumerate(points.items()):
        dash = "" if ranks == 2 else f' stroke-dasharray="{ranks}"'
        colour = colours[mode]
        style = f'class="mark"{f" style={chr(34)}stroke:{colour}{chr(34)}" if colour else ""}{dash}'
        fill = f'class="dot"{f" style={chr(34)}fill:{colour}{chr(34)}" if colour else ""}'
        places = [place(at, rate) for _, at, rate in sorted(line, key=lambda point: point[1])]
        parts.append(f'<polyline points="{" ".join(map(",".join, places))}" fill="none" {style}/>')
        parts += [f'<circle cx="{x}" cy="{y_of}" r="{4 if len(places) > 1 else 6}" {fill}/>'
                  for x, y_of in places]
        x, y = 12 + (WIDTH // 2) * (row % 2), HEIGHT + 6 + ROW * (row // 2)
        if len(places) > 1:
            parts.append(f'<line x1="{x}" x2="{x + 28}" y1="{y}" y2="{y}" {style}/>')
        parts.append(f'<circle cx="{x + 14}" cy="{y}" r="4" {fill}/><text x="{x + 36}" y="{y + 5}">'
                     f'{names[mode]}{f", {ranks} ranks" if several else ""}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
