"""The picture of bench/network.py: samples per second by the rate of the links."""

import math

COLOURS = {"dense16": "#000000", "onebit": "#d55e00",
           "onebit-clip": "#e69f00", "onebit-two": "#009e73", "ddp": "#0072b2", "ddp-fp16": "#56b4e9"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 480, 70, 200, 30, 50


def ticks(low, high):
    """Returns the numbers of 1, 2, 5, 10, ... around the values."""
    power = math.floor(math.log10(low))
    steps = [digit * 10.0 ** exponent for exponent in range(power, power + 8)
             for digit in (1, 2, 5)]
    first = max(step for step in steps if step <= low)
    last = min(step for step in steps if step >= high)
    return [step for step in steps if first <= step <= last]


def picture(points, title):
    """`points`: {(mode, ranks): [(name of the rate, position from 0 to 1, samples per second)]}."""
    rates = [rate for line in points.values() for _, _, rate in line]
    marks = ticks(min(rates), max(rates))
    low, high = math.log(marks[0]), math.log(marks[-1])

    def place(at, rate):
        x = LEFT + (WIDTH - LEFT - RIGHT) * (0.03 + 0.94 * at)
        y = TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log(rate)) / (high - low or 1)
        return f"{x:.1f}", f"{y:.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" '
             'fill="white"/>']
    for mark in marks:
        _, y = place(0, mark)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 8}" y="{y}" dy="4" text-anchor="end">{mark:g}</text>')
    for name, at in sorted({(name, at) for line in points.values() for name, at, _ in line}):
        x, _ = place(at, marks[0])
        parts.append(f'<text x="{x}" y="{HEIGHT - 28}" text-anchor="middle">{name}</text>')
    for row, ((mode, ranks), line) in enumerate(points.items()):
        dash = "" if ranks == 2 else f' stroke-dasharray="{ranks}"'
        style = f'stroke="{COLOURS[mode]}" stroke-width="1.6"{dash}'
        places = [place(at, rate) for _, at, rate in sorted(line, key=lambda point: point[1])]
        y = TOP + 10 + 18 * row
        parts.append(f'<polyline points="{" ".join(map(",".join, places))}" fill="none" {style}/>')
        parts += [f'<circle cx="{x}" cy="{y_of}" r="2.5" fill="{COLOURS[mode]}"/>'
                  for x, y_of in places]
        parts.append(f'<line x1="{WIDTH - RIGHT + 15}" x2="{WIDTH - RIGHT + 40}" y1="{y}" y2="{y}" '
                     f'{style}/><text x="{WIDTH - RIGHT + 46}" y="{y + 4}">{mode}, {ranks} ranks'
                     '</text>')
    parts.append(f'<text x="{LEFT}" y="16">{title}</text></svg>')
    return "\n".join(parts) + "\n"
