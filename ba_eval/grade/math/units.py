r"""Splits a unit from a value: `15\mbox{ cm}^2`, `5.4 \text{ cents}`, `300 \mathrm{~km} / \mathrm{s}`, `28 apples`."""

import re
from fractions import Fraction

from ba_eval.grade.math.tokens import CHANGED_BEHIND, names

_GROUP = (
    r"\\(?:text|mbox|hbox|mathrm|textnormal|textrm|textbf|textit|operatorname|mathbf|rm)\s*\{(?:[^{}]|\{[^{}]*\})*\}"
)
_LETTER = "[A-Za-zÀ-ÖØ-öø-ɏЀ-ӿ]"
_PLAIN = rf"{_LETTER}+\.?"
_SYMBOL = rf"(?:\\mu\s*{_GROUP}|(?:[kM]|\\(?:text|mathrm)\s*\{{\s*[kM]\s*\}})?\s*\\Omega(?![A-Za-z]))"
_POWER = r"(?:\s*\^\s*(?:\{\s*[-+]?\d+\s*\}|[-+]?\d))?"
_JOIN = r"\s*(?:/|\\cdot|\\times|\*|\\per|-)?\s*"
_MARKED = re.compile(rf"(?P<unit>(?:(?:/\s*)?(?:{_SYMBOL}|{_GROUP}){_POWER}{_JOIN})+)$")
_WORDS = re.compile(
    rf"(?<=[\d}})\]%.])(?P<unit>\s*(?:per\s+)?(?:{_PLAIN}{_POWER}(?:\s*/\s*|\s+|\s*\\cdot\s*)?){{1,6}})$"
)
_QUOTIENT = re.compile(rf"(?<=[\d}})\]\s,~])\\frac\s*\{{\s*({_GROUP}{_POWER})\s*\}}\s*\{{\s*({_GROUP}{_POWER})\s*\}}$")
_MICRO = re.compile(r"([-+]?[\d.]+(?:\s*\\times\s*10\s*\^\s*(?:\{\s*-?\d+\s*\}|\d))?)\s*(?:\\mu\s*|u)([msgFVAWLHNC])")
_POWER_FIRST = re.compile(r"(?<=\d)(?P<unit>\s*(?:sq(?:uare)?|cubic|cu)\.?\s+[A-Za-z]+)$", re.I)

Dimensions = dict[str, int]
_KNOWN: dict[str, tuple[Dimensions, Fraction]] = {}
_LENGTH, _AREA, _VOLUME, _TIME, _MASS = "length", "length^2", "length^3", "time", "mass"
_CALENDAR, _MONEY, _ANGLE, _DATA, _AMOUNT = "calendar", "money", "angle", "data", "amount"
_FORCE, _ENERGY, _PRESSURE = "mass length time^-2", "mass length^2 time^-2", "mass length^-1 time^-2"


def _define(dimensions: str, scale: str | int | Fraction, *spellings: str) -> None:
    powers = {name: int(power or 1) for name, _, power in (part.partition("^") for part in dimensions.split())}
    for name in spellings:
        _KNOWN[name] = (powers, Fraction(scale))


_define(_LENGTH, "1/1000", "мм", "mm", "millimeter", "millimetre")
_define(_LENGTH, "1/100", "см", "cm", "centimeter", "centimetre")
_define(_LENGTH, "1/10", "дм", "dm", "decimeter", "decimetre")
_define(_LENGTH, 1, "м", "m", "meter", "metre")
_define(_LENGTH, 1000, "км", "km", "kilometer", "kilometre")
_define(_LENGTH, "254/10000", "in", "inch", "inche")
_define(_LENGTH, "3048/10000", "ft", "foot", "feet")
_define(_LENGTH, "9144/10000", "yd", "yard")
_define(_LENGTH, "1609344/1000", "mi", "mile")
_define(_LENGTH, "1/1000000000", "nm", "nanometer", "nanometre")
_define(_LENGTH, "1/1000000", "µm", "μm", "mum", "micrometer", "micrometre", "micron")
_define(_LENGTH, "1/10000000000", "angstrom", "ångström", "Å")
_define(_LENGTH, 149597870700, "AU", "au")
_define(_LENGTH, 9460730472580800, "ly", "light-year", "lightyear")
_define(_LENGTH, 30856775814913673, "pc", "parsec")
_define(_LENGTH, 30856775814913673 * 10**3, "kpc", "kiloparsec")
_define(_LENGTH, 30856775814913673 * 10**6, "Mpc", "megaparsec")
_define(_AREA, 10000, "hectare", "ha")
_define(_AREA, "40468564224/10000000", "acre")
_define(_TIME, "1/1000000000", "ns", "nanosecond")
_define(_TIME, "1/1000", "ms", "millisecond")
_define(_TIME, "1/1000000", "µs", "mus", "microsecond")
_define(_TIME, 1, "s", "sec", "second")
_define(_TIME, 60, "min", "minute")
_define(_TIME, 3600, "h", "hr", "hour")
_define(_TIME, 86400, "day")
_define(_TIME, 604800, "week", "wk")
# A month has no length in days.
_define(_CALENDAR, 1, "month")
_define(_CALENDAR, 12, "year", "yr")
_define(_CALENDAR, 120, "decade")
_define(_CALENDAR, 1200, "century", "centurie")
_define(_CALENDAR, 12 * 10**6, "Myr")
_define(_CALENDAR, 12 * 10**9, "Gyr")
_define(_MASS, "1/1000000000", "µg", "mug", "microgram")
_define(_MASS, "1/1000000", "mg", "milligram")
_define(_MASS, "1/1000", "г", "g", "gram", "gm")
_define(_MASS, 1, "кг", "kg", "kilogram", "kilo")
_define(_MASS, 1000, "tonne", "ton")
_define(_MASS, "45359237/100000000", "lb", "pound")
_define(_MASS, "45359237/1600000000", "oz", "ounce")
_define(_VOLUME, "1/1000000", "ml", "milliliter", "millilitre", "cc")
_define(_VOLUME, "1/1000", "l", "liter", "litre")
_define(_VOLUME, "3785411784/1000000000000", "gallon", "gal")
_define(_VOLUME, "3785411784/4000000000000", "quart", "qt")
_define(_VOLUME, "3785411784/8000000000000", "pint")
_define(_VOLUME, "3785411784/16000000000000", "cup")
_define(_MONEY, 1, "dollar", "usd", "euro", "yuan", "buck")
_define(_MONEY, "1/100", "cent", "penny", "pennie")
_define("length time^-1", "1852/3600", "knot", "kn")
_define("length time^-1", "1609344/3600000", "mph")
_define("length time^-1", "1000/3600", "kmh", "kph")
for _dimensions, _symbol, _name in (
    (_ENERGY, "J", "joule"), ("mass length^2 time^-3", "W", "watt"), (_FORCE, "N", "newton"),
    ("time^-1", "Hz", "hertz"), ("mass length^2 time^-3 current^-1", "V", "volt"), (_PRESSURE, "Pa", "pascal"),
    ("mass length^2 time^-3 current^-2", "Omega", "ohm"), ("current", "A", "ampere"), (_AMOUNT, "mol", "mole"),
    ("time current", "C", "coulomb"), ("mass^-1 length^-2 time^4 current^2", "F", "farad"),
    ("mass length^2 time^-2 current^-2", "H", "henry"), ("mass time^-2 current^-1", "T", "tesla"),
    (_DATA, "B", "byte"), (_ENERGY, "cal", "calorie"), (_ENERGY, "Wh", "watthour"),
):  # fmt: skip
    _size = {"cal": Fraction(4184, 1000), "Wh": Fraction(3600)}.get(_symbol, Fraction(1))
    for _prefix, _word, _scale in (("", "", 1), ("n", "nano", "1/1000000000"), ("mu", "micro", "1/1000000"),
                                   ("m", "milli", "1/1000"),
                                   ("k", "kilo", 10**3), ("M", "mega", 10**6), ("G", "giga", 10**9),
                                   ("T", "tera", 10**12)):  # fmt: skip
        _define(_dimensions, _size * Fraction(_scale), _prefix + _symbol, _word + _name)
_define(_DATA, 1000, "KB")
_define(_DATA, "1/8", "bit")
_define("time^-1", "1/60", "rpm")
_define("mass time^-2 current^-1", "1/10000", "gauss")
_define("current", 1, "amp")
_define(_ENERGY, "1/10000000", "erg")
_define(_ENERGY, "1602176634/10000000000000000000000000000", "eV")
_define(_ENERGY, "1602176634/10000000000000000000000000", "keV")
_define(_ENERGY, "1602176634/10000000000000000000000", "MeV")
_define(_ENERGY, "1602176634/10000000000000000000", "GeV")
_define(_FORCE, "1/100000", "dyne", "dyn")
_define(_PRESSURE, 101325, "atm", "atmosphere")
_define(_PRESSURE, 100000, "bar")
_define(_PRESSURE, "101325/760", "torr", "Torr", "mmHg")
_define(_PRESSURE, "6894757293168/1000000000", "psi")
_define(_ANGLE, 1, "degree", "deg", "°")
_define(_ANGLE, "1/60", "arcmin", "arcminute")
_define(_ANGLE, "1/3600", "arcsec", "arcsecond")
_define("radian", 1, "radian", "rad")
_define("percent", 1, "percent", "pct", "percentage", "%")
_define("temperature", 1, "K", "kelvin")
_KEPT_WORDS = names(
    "or and pi sqrt sin cos tan log ln exp inf infinity am pm a.m. p.m. percent percentage pct cot sec csc mod i "
    "e x y z U oo if for where when with theta alpha beta lambda mu base"
)
_SHORT = names(
    "cm mm km m ft in yd mi kg g mg lb lbs oz s sec min h hr hrs ml mL L l mph kmh rpm V J W N Hz eV K A Pa mol "
    "kJ kW MW nm amu pc ly ha ns us GB MB KB TB yr F C cc sq usd eur gbp th st nd rd ms MeV keV kV mV mA kN kHz "
    "MHz GHz kPa atm мм см м км г кг л ч мин руб"
)
_LETTERS = re.compile(r"\s*[a-z]\s+(?:\\cdot\s*)?[a-z](?![A-Za-z])(?!\s*\^\s*\{?\s*-)")
_TEMPERATURE = re.compile(
    r"\s*\^\s*\{?\s*\\circ\s*\}?\s*(?:\\(?:text|mathrm|mbox|textrm)\s*\{)?\s*(?P<scale>C|F|K|Celsius|Fahrenheit)\s*\}?$"
)


def split_unit(text: str, letters: bool = False) -> tuple[str, str]:
    """Returns (value, unit) of a cleaned answer; the unit is empty where there is none, and spelt one way.

    With `letters` a letter right behind a number may be a unit too (`5m`), which is otherwise a product.
    """
    if (mixed := _compound(text) or _each_measured(text)) is not None:
        return mixed
    text = _QUOTIENT.sub(r"\1/\2", text)
    if (match := _TEMPERATURE.search(text)) and match.start():
        return text[: match.start()], "degrees " + match["scale"][0]
    if micro := _MICRO.fullmatch(text):
        return micro[1], f"mu{micro[2]}"
    match = _MARKED.search(text) if text.endswith(("}", "\\Omega")) or text[-1:].isdigit() else None
    if match is None:
        match = _POWER_FIRST.search(text) or _WORDS.search(text)
        if match is None or not _is_unit(match["unit"], letters):
            return text, ""
    value = text[: match.start()].rstrip(" \\,~")
    unit = _spell(match["unit"])
    if (
        not value
        or _are_factors(match["unit"], value)
        or re.search(r"\\mathbf\s*\{\s*[A-Za-z]\s*\}", match["unit"])
        or not re.search(r"[\dA-Za-z}\])]$|%$", value)
        or value.endswith(("^", "_", "=", "(", "+", "-"))
        or _is_words(unit)
        or CHANGED_BEHIND.search(unit)
    ):
        return text, ""
    if unit.split(" ")[0] in ("or", "and"):
        return text, ""
    return value, unit


_MONEY_SIGN = re.compile(r"\\\$|[€£¥₹]|^\s*\$\s*[\d.,]+\s*$|\\(?:pounds|euro|yen|textdollar)(?![a-z])")


def is_money(answer: str) -> bool:
    """Tells whether a text, as it was before cleaning, bears a currency sign."""
    return bool(_MONEY_SIGN.search(answer))


_DOLLARS_AND_CENTS = re.compile(
    r"(\d+)\s*(?:,|and|\\text\s*\{\s*and\s*\})?\s*(\d{1,2})\s*(?:\\(?:text|mathrm|mbox)\s*\{\s*)?cents?\s*\}?", re.I
)


def in_dollars(text: str) -> str:
    """Returns 3.05 of `3 and 5 cents`, where a currency sign stood before the 3."""
    match = _DOLLARS_AND_CENTS.fullmatch(text)
    return f"{match[1]}.{int(match[2]):02d}" if match else text


def angles(value: str, unit: str) -> tuple[str, str, bool]:
    """Writes degrees as the sign; returns (value, unit, whether it was said to be in radians)."""
    if unit in ("radian", "radians", "rad", "rads"):
        return value, "", True
    if unit in ("degree", "degrees", "deg", "°") and re.fullmatch(r"(?!.*\b(?:and|or)\b)[^,;=<>&]*", value):
        return f"({value})^\\circ", "", False
    return value, unit, False


_COMPOUND_PART = r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)\.?"
_COMPOUND = re.compile(rf"\s*{_COMPOUND_PART}(?:\s*,?\s*(?:and\s+)?{_COMPOUND_PART}){{1,2}}\s*")
_ARC = re.compile(
    r"(\d+)\s*\^\s*\{?\s*\\circ\s*\}?\s*(\d+(?:\.\d+)?)\s*(?:'(?!')|\^\s*\{?\s*\\prime\s*\}?(?!\^))\s*"
    r"(?:(\d+(?:\.\d+)?)\s*(?:''|\"|\^\s*\{?\s*\\prime\s*\\prime\s*\}?))?"
)


def _compound(text: str) -> tuple[str, str] | None:
    """Adds up 1 hour 30 minutes, 3 dollars and 5 cents, 5 feet 6 inches, 30° 15': (value, first unit)."""
    if len(text) > 100:
        return None
    if arc := _ARC.fullmatch(text):
        total = Fraction(arc[1]) + Fraction(arc[2]) / 60 + Fraction(arc[3] or 0) / 3600
        return f"\\frac{{{total.numerator}}}{{{total.denominator}}}^\\circ", ""
    plain = re.sub(r"\\(?:text|mathrm|mbox|textrm)\s*\{([^{}]*)\}", r" \1 ", text).replace("\\", " ")
    if not _COMPOUND.fullmatch(plain):
        return None
    parts = [(Fraction(number), measure(unit), unit) for number, unit in re.findall(_COMPOUND_PART, plain)]
    sizes = [known[1] for _, known, _ in parts if known]
    if (
        len(sizes) < len(parts)
        or len({known[0] for _, known, _ in parts if known}) > 1
        or sorted(set(sizes))[::-1] != sizes
    ):
        return None
    total = sum(number * size for (number, _, _), size in zip(parts, sizes, strict=True)) / sizes[0]
    return f"{total.numerator}/{total.denominator}", parts[0][2]


_MEASURED = re.compile(
    r"([-+]?\d+(?:\.\d+)?)"
    r"(?:\s+|\s*(?:\\ )?\\(?:text|mathrm|mbox)\s*\{\s*|(?=[A-Za-z]{2}))([A-Za-z]+(?:\s*/\s*[A-Za-z]+)?(?:\^\d)?)\s*\}?"
)


def _each_measured(text: str) -> tuple[str, str] | None:
    """Returns (the numbers, their unit) of 120 km/h and 60 km/h."""
    if len(text) > 200:
        return None
    items = [
        _MEASURED.fullmatch(item.strip())
        for item in re.split(r"[,;]\s*(?:and\s+)?|\s+and\s+|\\text\s*\{\s*and\s*\}", text)
    ]
    units = {item[2] for item in items if item}
    if len(items) < 2 or None in items or len(units) > 1 or measure(unit := units.pop()) is None:
        return None
    return ", ".join(item[1] for item in items if item), unit


def _are_factors(unit: str, value: str) -> bool:
    """Tells whether plain letters behind a value are a product.

    Two of them behind a fraction are (mV^2, m V^2), and so is one that stands in the value as well (2 m s + 2 s).
    """
    if "\\" in unit:
        return False
    words = re.findall(r"[A-Za-z]+", unit)
    if re.search(r"[})]$|\\frac\s*\d\s*\d$", value) and (
        (len(words) > 1 and max(map(len, words)) == 1) or re.fullmatch(r"[a-z][A-Z]", words[0])
    ):
        return True
    return any(len(word) == 1 and re.search(rf"(?<![A-Za-z\\]){word}(?![A-Za-z])", value) for word in words)


def _is_words(unit: str) -> bool:
    return (
        unit in ("", "or", "and", "am", "pm", "a.m", "p.m", "percent", "e", "i", "pi")
        or " or " in f" {unit} "
        or " and " in f" {unit} "
    )


def _is_unit(words: str, letters: bool) -> bool:
    found = re.findall(rf"{_LETTER}+", words)
    if not found or any(n in _KEPT_WORDS or n.lower() in ("or", "and") for n in found):
        return False
    spaced = words[:1] in " \t"
    first = found[0]
    if first in _SHORT:
        if len(first) == 1 and (
            any(len(n) < 3 and n not in _SHORT for n in found[1:]) or (first.islower() and _LETTERS.match(words))
        ):
            # m v^2 and m g are products of letters.
            return False
        return spaced or len(first) > 1 or (letters and first in ("m", "s", "g"))
    return len(first) >= 3 and (spaced or first.lower().rstrip("s") in _KNOWN)


def _spell(unit: str) -> str:
    unit = re.sub(
        r"\\(?:text|mbox|hbox|mathrm|textnormal|textrm|textbf|textit|operatorname|mathbf|rm)(?![A-Za-z])", "", unit
    )
    unit = re.sub(r"\\(?:cdot|times)|[*~]", " ", unit)
    unit = re.sub(r"\\mu\s*\{?\s*", "mu", unit)
    unit = re.sub(r"([kM])\s*\}?\s*\\Omega", r"\1Omega", unit)
    unit = re.sub(r"[{}\\,()]", "", unit)
    unit = " ".join(unit.split()).strip(" .-")
    unit = re.sub(r"\s*\^\s*", "^", unit)
    unit = re.sub(r"\s*/\s*|\s+per\s+", "/", unit)
    unit = re.sub(r"^(?:sq|square)\.?\s+([A-Za-z]+)", r"\1^2", unit, flags=re.I)
    unit = re.sub(r"^(?:cu|cubic)\.?\s+([A-Za-z]+)", r"\1^3", unit, flags=re.I)
    return unit


def measure(unit: str) -> tuple[str, Fraction] | None:
    """Returns (dimensions, size in base units) of a unit that is known, else None."""
    total: dict[str, int] = {}
    scale = Fraction(1)
    sign = 1
    for part in re.split(r"([/ ])", unit):
        if part == "/":
            sign = -1
            continue
        if not part.strip():
            continue
        match = re.fullmatch(r"([^\W\d_]+(?:-[a-z]+)?|[°%])(?:\^(-?\d))?", part)
        if not match:
            return None
        name = match[1]
        known = _KNOWN.get(name) or _KNOWN.get(name.lower()) or _KNOWN.get(re.sub(r"s$", "", name.lower()))
        if known is None:
            return None
        power = int(match[2] or 1) * sign
        for dimension, times in known[0].items():
            total[dimension] = total.get(dimension, 0) + times * power
        scale *= known[1] ** power
    if not total:
        return None
    return ",".join(f"{name}^{power}" for name, power in sorted(total.items()) if power), scale


def ratio(gold: str, answer: str) -> Fraction | None:
    """Returns the factor that turns a value in `answer` units into one in `gold` units; None where they clash.

    A unit that is missing or not known is taken to be the other's: the wording of a unit is not what is graded.
    """
    if not gold or not answer or gold.lower().rstrip("s") == answer.lower().rstrip("s"):
        return Fraction(1)
    scales = [unit for unit in (gold, answer) if unit.startswith("degrees ")]
    a, b = measure(gold), measure(answer)
    if len(scales) == 2 or (scales and any(known and known[0] == "temperature^1" for known in (a, b))):
        return None
    if a is None or b is None:
        return Fraction(1)
    if a[0] != b[0]:
        return None
    return b[1] / a[1]
