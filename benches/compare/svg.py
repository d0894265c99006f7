"""Charts as SVG, readable in light and in dark: bars, and lines over axes that may be logarithmic."""

import html
import math

# Colours of surface, text, quiet text, lines, and of the series in their order; in light and in dark.
LIGHT = ["#fcfcfb", "#1c1c1a", "#5c5b57", "#dddcd6", "#2a78d6", "#b0482f", "#1a8a62", "#8a8984"]
DARK = ["#1b1b1a", "#f2f1ec", "#b3b2ab", "#3b3b38", "#5b9fee", "#ec8a6d", "#43bd8e", "#8f8e88"]
NAMES = ["surface", "text", "quiet", "grid", "s0", "s1", "s2", "s3"]
# Height of a bar and of the step to the next one.
BAR, STEP = 13, 20
# Where the first panel begins, and the room around the plot of each: left, top, right, bottom.
TOP, ROOM = 72, (58, 30, 26, 42)
# The room for the names of lines at their ends, and the least distance between two.
LABELS, APART = 172, 15
# How far from the ends of its axis the first and the last point are where values are written above them.
ASIDE = 24


def style():
    """The colours as variables, and what is drawn with them."""
    light, dark = ("".join(f"--{name}:{colour};" for name, colour in zip(NAMES, colours, strict=True))
                   for colours in (LIGHT, DARK))
    series = "".join(
        f".f{n}{{fill:var(--s{n})}}.l{n}{{stroke:var(--s{n});fill:none;stroke-width:2;stroke-linejoin:round}}"
        for n in range(4)
    )
    return (
        f"<style>svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
        "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--text)}"
        ".title{font-size:16px;font-weight:600}.quiet{fill:var(--quiet)}.panel{font-weight:600}"
        ".surface{fill:var(--surface)}.grid{stroke:var(--grid);stroke-width:1}.end{text-anchor:end}"
        ".middle{text-anchor:middle}.ring{stroke:var(--surface);stroke-width:2}.spread{stroke:var(--quiet);stroke-width:1.5}"
        f".dashed{{stroke-dasharray:5 4;stroke-width:1.5}}{series}</style>"
    )


def short(value):
    """A number as people read it: three digits that count, and k and M for thousands and millions."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size and (abs(value) >= 10 * size or value % (size / 10) == 0):
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def steps(low, high, number=5):
    """Round values from the one at or below `low` to the one at or above `high`."""
    rough = max(high - low, 1e-9) / number
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * n for n in range(first, last + 1)]


class Axis:
    """Where a value is, between two places."""

    def __init__(self, values, begin, end, logarithmic, from_zero=True):
        self.begin, self.end, self.logarithmic = begin, end, logarithmic
        low, high = min(values), max(values)
        if logarithmic:
            first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
            self.marks = [10.0 ** n for n in range(first, max(last, first + 1) + 1)]
        else:
            self.marks = steps(min(0, low) if from_zero else low, high)
        self.low, self.high = self.marks[0], self.marks[-1]

    def at(self, value):
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = map(math.log10, (low, high, value))
        return self.begin + (value - low) / ((high - low) or 1) * (self.end - self.begin)


class Chart:
    """A drawing with a title, what it was made of, and a description in words."""

    def __init__(self, title, made, width, height):
        self.title, self.made, self.width, self.height = title, made, width, height
        self.parts, self.described = [], []

    def say(self, sentence):
        """Adds to the description."""
        self.described.append(sentence)

    def add(self, *parts):
        self.parts += parts

    def write(self, x, y, words, kind=""):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{html.escape(words)}</text>')

    def bars(self, left, top, width, title, rows):
        """Bars with a name, a value, how far it is spread, and what is written at the end."""
        self.write(20, top, title, "panel")
        axis = Axis([value + spread for _, value, spread, _ in rows], left, left + width, False)
        for number, (name, value, spread, label) in enumerate(rows):
            y, end = top + 10 + number * STEP, axis.at(value)
            self.write(left - 8, y + BAR - 2, name, "end" + ("" if number == 0 else " quiet"))
            self.add(f'<path class="f{0 if number == 0 else 3}" d="{bar(left, y, end)}"/>')
            far = max(end, axis.at(value + spread))
            if spread:
                self.add(f'<path class="spread" d="M{axis.at(value - spread):.1f} {y + BAR / 2}H{far:.1f}"/>')
            self.write(far + 7, y + BAR - 2, label)

    def panel(self, column, row, title, unit, lines, log_x=False, log=False, wide=False):
        """Axes for some lines of points, each with x, y and how far y is spread."""
        width = (self.width - 20) / (1 if wide else 2)
        height = 230 if not wide else self.height - TOP
        return Panel(self, 10 + column * width, TOP + row * (height - 8), width, height - 8, title, unit, lines,
                     log_x, log, wide)

    def text(self):
        """The document."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" aria-labelledby="title desc">\n'
            f'<title id="title">{html.escape(self.title)}</title>\n'
            f'<desc id="desc">{html.escape(". ".join([self.made, *self.described]))}.</desc>\n{style()}\n'
            f'<rect class="surface" width="{self.width}" height="{self.height}" rx="8"/>\n'
            f'<text x="20" y="30" class="title">{html.escape(self.title)}</text>\n'
            f'<text x="20" y="50" class="quiet">{html.escape(self.made)}</text>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def bar(left, y, end):
    """The outline of a bar, round at its end."""
    round_by = min(4, max(0.0, end - left))
    return (f"M{left} {y}H{end - round_by:.1f}q{round_by:.1f} 0 {round_by:.1f} {round_by:.1f}v{BAR - 2 * round_by:.1f}"
            f"q0 {round_by:.1f} -{round_by:.1f} {round_by:.1f}H{left}z")


class Panel:
    """Axes, and lines in them."""

    def __init__(self, chart, left, top, width, height, title, unit, lines, log_x, log, wide):
        self.chart, (before, above, after, below) = chart, ROOM
        named = wide or len(lines) > 1
        self.left, self.right = left + before, left + width - (LABELS if wide else 86 if named else after)
        self.top, self.bottom, self.taken = top + above, top + height - below, []
        points = [point for line in lines for point in line]
        aside = ASIDE if log_x else 0
        self.x = Axis([x for x, *_ in points], self.left + aside, self.right - aside, log_x)
        lows, highs = ([y + way * spread for _, y, spread in points] for way in (-1, 1))
        if log:
            lows = highs = [y for _, y, _ in points]
        self.y = Axis(lows + highs, self.bottom, self.top, log)
        chart.write(left + 10, top + 14, title, "panel")
        for mark in self.y.marks:
            at = self.y.at(mark)
            chart.add(f'<path class="grid" d="M{self.left} {at:.1f}H{self.right}"/>')
            chart.write(self.left - 8, at + 4, short(mark), "end quiet")
        for mark in self.x.marks:
            chart.write(self.x.at(mark), self.bottom + 17, short(mark), "middle quiet")
        chart.write((self.left + self.right) / 2, self.bottom + 33, unit, "middle quiet")

    def line(self, points, series, name="", dots=True, dashed=False, numbers=False):
        """A line with its name at its end, dots with the spread of each, and its values written above."""
        at = [(self.x.at(x), self.y.at(y)) for x, y, _ in points]
        drawn = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        self.chart.add(f'<path class="l{series}{" dashed" if dashed else ""}" d="M{drawn}"/>')
        for (x, y), (_, value, spread) in zip(at, points, strict=True):
            if spread:
                ends = self.y.at(value - spread), self.y.at(value + spread)
                self.chart.add(f'<path class="spread" d="M{x:.1f} {ends[0]:.1f}V{ends[1]:.1f}"/>')
            if dots and not dashed:
                self.chart.add(f'<circle class="f{series} ring" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
            if numbers:
                self.chart.write(x, min(y, self.y.at(value + spread)) - 9, short(value), "middle")
        if name:
            ways = (at[-1][1] + way * step for step in range(self.chart.height) for way in (-1, 1))
            y = next(y for y in ways if all(abs(y - other) >= APART for other in self.taken))
            self.taken.append(y)
            self.chart.add(f'<path class="l{series}{" dashed" if dashed else ""}" d="M{self.right + 6} {y:.1f}h16"/>')
            self.chart.write(self.right + 27, y + 4, name)
