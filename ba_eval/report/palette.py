"""The colours of all plots: told apart under each kind of colour blindness, on white and on dark, and by shape too."""

LIGHT = ("#2f86ee", "#7a3b06", "#3f7f62", "#d63fa9", "#8f8b12", "#43109f")
"""Contrast of 3 and more with white; at least 0.1 apart in OKLab for normal, protan, deutan and tritan vision."""
DARK = ("#2e8bff", "#f7a55e", "#5cebcf", "#dc45a6", "#a3921a", "#b5b4f0")
"""The same on `DARK_PAPER`."""
LIGHT_PAPER, DARK_PAPER = "#ffffff", "#14161a"
MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "P": "✚", "X": "✖"}
"""matplotlib's markers, with the character that stands for each in a legend."""
DASHES = ("solid", "dashed", "dotted", "dashdot")

INK, MUTED, RULE = "#1b1e23", "#5f6670", "#dde1e6"
"""Text, secondary text, grid lines of a figure on white."""
VARIABLES = {INK: "--ink", MUTED: "--muted", RULE: "--rule"} | {one: f"--c{at}" for at, one in enumerate(LIGHT)}
"""Which variable of the page's style sheet stands for a colour of a figure."""


def look(number: int) -> tuple[str, str, str]:
    """Colour, marker and dash of the `number`-th model; they repeat together only after 168 models."""
    count = len(LIGHT)
    return LIGHT[number % count], list(MARKERS)[number % len(MARKERS)], DASHES[number // count % len(DASHES)]
