"""A second method where numbers cannot tell: sympy, on expressions built from the tree and never from text."""

import math
from typing import Any

from ba_eval.grade.math.tokens import names
from ba_eval.grade.math.tree import Node, contains

_FUNCTIONS = {
    "ln": "log", "log": "log", "abs": "Abs", "floor": "floor", "ceil": "ceiling", "binomial": "binomial", "min": "Min",
    "max": "Max", "gcd": "gcd", "lcm": "lcm", "Re": "re", "Im": "im", "arg": "arg", "sgn": "sign", "erf": "erf",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "gamma": "gamma",
}  # fmt: skip
_FUNCTIONS |= {n: n for n in names("sin cos tan cot sec csc asin acos atan acot sinh cosh tanh coth")}


_INTEGRAL = frozenset({"int"})
_SIDES = {"to": "+-", "to+": "+", "to-": "-"}


class _Unknown(Exception):
    """Sympy has no counterpart."""


def same_form(a: Node, b: Node) -> bool | None:
    """Tells whether two trees have one value or form; None where sympy cannot tell, or one has no finite value."""
    try:
        import sympy
    except Exception as trouble:  # it is installed: only the memory limit keeps it, or a library of its own, out
        raise MemoryError from trouble
    unknown = sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.AccumBounds, sympy.nan, sympy.zoo
    try:
        left, right = _built(a).doit(), _built(b).doit()
        if left == right and not left.has(*unknown):
            return True
        if any(side.has(*unknown, sympy.oo) for side in (left, right)):
            return None
        if left.is_number and right.is_number:
            values = [complex(side.evalf(30)) for side in (left, right)]
            scale = max(map(abs, values))
            if not math.isfinite(scale):
                return None
            # Sympy's integrals may be wrong across a corner: there only agreement tells.
            integral = contains(a, _INTEGRAL) or contains(b, _INTEGRAL)
            return True if abs(values[0] - values[1]) <= 1e-12 * scale else None if integral else False
        if sympy.simplify(left - right) == 0:
            return True
    except MemoryError:
        raise
    except Exception:  # sympy raises all kinds of errors for what it cannot do; none of them decides anything
        return None
    return None


def _built(node: Node, bound: frozenset[str] = frozenset()) -> Any:
    """`bound`: the letters that an integral or a limit runs through, which may be negative."""
    import sympy

    kind = node[0]
    if kind in ("num", "dec"):
        return sympy.Rational(node[1].numerator, node[1].denominator)
    if kind == "const":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}[node[1]]
    if kind == "sym":
        return sympy.Symbol(node[1], real=True) if node[1] in bound else sympy.Symbol(node[1], positive=True)
    if kind == "big":
        return _big(node, bound)
    parts = [_built(part, bound) for part in node[1:] if isinstance(part, tuple)]
    if kind == "add":
        return sympy.Add(*parts)
    if kind == "mul":
        return sympy.Mul(*parts)
    if kind == "neg":
        return -parts[0]
    if kind == "div":
        return parts[0] / parts[1]
    if kind == "pow":
        if parts[1].is_number and not (parts[1].is_Rational and abs(parts[1]) < 1000):
            raise _Unknown("a power")
        return sympy.Pow(parts[0], parts[1])
    if kind == "unit":
        return parts[0]
    if kind == "percent":
        return parts[0] / 100
    if kind == "fact" and not (parts[0].is_number and abs(parts[0]) > 1000):
        return sympy.factorial(parts[0])
    if kind == "call":
        return sympy.Function(node[1])(*parts)
    if kind == "fn" and node[1] in _FUNCTIONS:
        return getattr(sympy, _FUNCTIONS[node[1]])(*parts)
    raise _Unknown(kind)


def _big(node: Node, bound: frozenset[str]) -> Any:
    """Sums, products, integrals and limits, as sympy knows them."""
    import sympy

    _, name, lower, upper, body, *variable = node
    if name in ("sum", "prod") and lower[0] == "rel" and lower[2][0] == "sym":
        kind = sympy.Sum if name == "sum" else sympy.Product
        return kind(_built(body, bound), tuple(_built(part, bound) for part in (lower[2], lower[3], upper)))
    if name == "lim" and lower[0] == "rel" and lower[1] in _SIDES and lower[2][0] == "sym":
        inside = bound | {lower[2][1]}
        target = _built(lower[3], bound)
        side = "-" if target == sympy.oo else _SIDES[lower[1]]
        return sympy.Limit(_built(body, inside), _built(lower[2], inside), target, side)
    if variable:
        if lower[0] == "dots":
            return sympy.Integral(_built(body, bound), _built(variable[0], bound))
        inside = bound | {variable[0][1]}
        limits = _built(lower, bound), _built(upper, bound)
        return sympy.Integral(_built(body, inside), (_built(variable[0], inside), *limits))
    raise _Unknown(name)
