"""Statements that run again and again show in each round what they show with NumPy arrays.

What results are used for is learned, and what was found for a form of arguments is kept: a loop takes other ways after
some rounds than at first. So each seed is a loop of a few statements, which runs sixty times; what its results are used
for, the arrays' sizes and layouts, and what else holds their memory differ between seeds, and in the middle of some.

    python fuzz_hot.py FIRST LAST       seeds; each failing loop is made small, in processes of its own, and printed
    python fuzz_hot.py --show SEED      the program of a seed, and how it differs when nothing ran before it
"""
from __future__ import annotations

import contextlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common
from common import Values, World, driver, final_difference, known, limit_memory, minimise, step_difference

ROUNDS = 60
DTYPES = ["f8"] * 5 + ["f4"] * 5 + ["i8"] * 3 + ["i4"] * 3 + ["?", "i1", "u1", "f2", "c8", "c16"]
SIZES = [
    [(), (1,), (5,), (12,), (3, 4), (2, 3, 4), (2, 2, 2, 2), (1, 6), (4, 1), (0,), (0, 3)],
    [(700,), (20, 40), (8, 9, 10), (4, 5, 6, 5), (32, 32), (1, 600)],
    [(40000,), (40001,), (200, 200), (20, 50, 40), (10, 20, 10, 20), (2, 20000), (20000, 2)],
    [(140000,), (300000,), (131072,), (400, 400), (350, 400), (512, 256), (50, 60, 70), (64, 64, 64), (20, 30, 20, 15),
        (3, 50000), (70000, 2)],
]
#: Nanoseconds for an element, roughly: a loop with more than BUDGET of them for a round is too slow.
BUDGET = 2_500_000
SLOW = {"sort": 12, "argsort": 40, "exact": 1, "sin": 12, "unique": 30, "matmul": 10, "mask": 6, "std": 4}
SLOW_DTYPES = {"e": 4, "D": 3, "F": 3}
#: What may differ in its memory order: index arrays, functions that are not listed among those that keep it, and
#: expressions of several operators, for whose results NumPy takes the memory of an intermediate one.
UNORDERED = ("places", "other", "nested")
#: What has an order of its own: of a broadcast array, which is reduced by way of another array.
OWN_ORDER = (".std(", ".var(", "count_nonzero(")


class Gen:
    """Makes a loop: statements before it (`setup`) and in it (`body`), as text. `t` is the number of the round."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.count = {}
        self.world = Plain(False)
        self.env = self.world.names
        self.env["t"] = 0
        self.setup, self.body, self.after, self.last = [], [], [], []
        self.inexact, self.unordered, self.ordered = set(), set(), set()
        self.cost = 0
        self.alias_writes = False
        self.plain = self.chance(.25)       # one operation of large arrays and no more, of which a lot is learned

    def new(self, letter):
        self.count[letter] = self.count.get(letter, 0) + 1
        return f"{letter}{self.count[letter]}"

    def pick(self, *options):
        return self.r.choice(options)

    def chance(self, p):
        return self.r.random() < p

    def before(self, statement):
        if self.world.run(statement) is None:
            self.setup.append(statement)
            return True
        return False

    # arrays -----------------------------------------------------------------
    def values(self, shape, dtype):
        size = math.prod(shape)
        k, m = self.pick(1, 3, 7, 10), self.pick(5, 7, 11, 13)
        e = f"np.arange({size}) * {k} % {m}"
        if dtype == "?":
            return f"({e} < {m // 2}).reshape({shape})"
        e = f"({e} - {self.pick(0, 0, 2, 3)})"
        if dtype in ("c8", "c16"):
            e = f"({e} + 1j * (np.arange({size}) % 3))"
        elif dtype in ("f2", "f4", "f8") and self.chance(.3):
            e = f"({e} / 4)"
        e = f"{e}.astype({dtype!r}).reshape({shape})"
        if dtype in ("f4", "f8") and self.chance(.06):
            e = f"np.where({e} == 1, {self.pick('np.nan', 'np.inf', '-0.0')}, {e}).astype({dtype!r})"
        return e

    def array(self, shape, dtype):
        """The name of a new array, made before the loop, in some layout."""
        x = self.new("x")
        n = len(shape)
        layout = self.pick("C", "C", "F", "F", "axes", "axes", "axes", "reversed", "step", "broadcast", "slice", "view",
            "other", "host axes")
        if self.plain and self.chance(.6):
            layout = "axes"
        if not n:
            layout = self.pick("C", "view")
        if n < 2 and layout in ("F", "axes", "host axes"):
            layout = "C"
        if layout in ("axes", "host axes"):
            order = list(range(n))
            while order == sorted(order):
                self.r.shuffle(order)
            inside = tuple(shape[order.index(i)] for i in range(n))
            e = self.values(inside, dtype)
            e = f"A({e}).transpose({order})" if layout == "axes" else f"A({e}.transpose({order}))"
        elif layout == "F":
            e = f"A(np.asfortranarray({self.values(shape, dtype)}))"
        elif layout == "broadcast":
            i = self.r.randrange(n)
            inside = (*shape[:i], 1, *shape[i + 1:]) if self.chance(.5) else shape[1:]
            e = f"np.broadcast_to(A({self.values(inside, dtype)}), {shape})"
        elif layout == "C":
            e = f"A({self.values(shape, dtype)})"
        else:
            b = self.new("b")
            i = self.r.randrange(n) if n else 0
            if layout == "step":
                inside, where = (*shape[:i], 2 * shape[i], *shape[i + 1:]), [":"] * i + [self.pick("::2", "1::2")]
            elif layout == "slice":
                inside = tuple(size + 2 for size in shape)
                where = [self.pick("1:-1", ":-2", "2:") for _ in shape]
            elif layout == "reversed":
                inside, where = shape, [":"] * i + ["::-1"]
            elif layout == "view":
                inside, where = (2, *shape), ["0"]
            else:       # overlapping views of one base
                inside, where = (shape[0] + 3, *shape[1:]), ["1:-2"]
            self.before(f"{b} = A({self.values(inside, dtype)})")
            if layout in ("view", "other") and self.chance(.7):
                y = self.new("x")
                self.before(f"{y} = {b}[{'1' if layout == 'view' else '2:-1'}]")
            e = f"{b}[{', '.join(where)}]"
        self.before(f"{x} = {e}")
        return x

    def some_arrays(self):
        sizes = self.r.choices(range(4), (15, 20, 25, 40))[0] if not self.plain else self.pick(2, 3, 3)
        self.shape = self.r.choice([shape for shape in SIZES[sizes] if len(shape) > 1 or not self.plain])
        dtype = self.r.choice(DTYPES)
        for _ in range(self.pick(1, 2, 2, 3)):
            self.array(self.shape, dtype if self.chance(.7) else self.r.choice(DTYPES))
        if self.chance(.4) and self.shape:
            i = self.r.randrange(len(self.shape))
            self.array(self.pick(self.shape[1:], self.shape[-1:], (*self.shape[:i], 1, *self.shape[i + 1:]), ()), dtype)
        if self.chance(.25):
            self.before(f"{self.new('h')} = {self.values(self.shape, self.r.choice(DTYPES))}")

    def in_turn(self):
        """A name for one array and another in turn, or for one whose view changes in each round."""
        x = self.r.choice(self.names(letters="x"))
        v = self.env[x]
        other = self.name(letters="xh", condition=lambda w: w.shape == v.shape)
        y = self.new("y")
        e = self.pick(f"{x} if t % 2 else {other}", f"{x} if t % 2 else {other}", f"{x} if t < 31 else {other}",
            f"{x} if t % 5 else {x}.copy('F')", f"{x} if t % 4 else {x}.astype('f8')",
            f"({x}, {x}[::-1], {x}.T)[t % 3]",
            f"{x} if t % 2 else {x}.T", f"{x}[t % 3:]", f"{x} if t % 3 else {x} * 1")
        s = f"{y} = {e}"
        if self.world.run(s) is None:
            self.body.append(s)
            self.unordered |= {y} if "{other}" in e else set()

    # operands ---------------------------------------------------------------
    def names(self, letters="xry", exact=False, condition=None):
        return [k for k, v in self.env.items() if k[0] in letters and k[1:].isdigit() and isinstance(v, np.ndarray)
            and not (exact and k in self.inexact) and (condition is None or condition(v))]

    def name(self, **conditions):
        names = self.names(**conditions)
        if not names:
            return None
        # A result of this round is what the next statement uses, more often than not.
        return names[-1] if names[-1][0] == "r" and self.chance(.5) else self.r.choice(names)

    def scalar(self, v):
        if self.chance(.15):
            return self.pick("t", "(t % 3 + 1)", "(1 if t < 30 else 0.5)", "(2 if t < 41 else 300)", "float(t % 4)",
                "(t % 2 == 0)", "np.float32(t % 5)", "(2 if t % 2 else 2.0)")
        if self.chance(.2):
            return self.pick("np.float32(1.5)", "np.int8(3)", "np.float64(2)", "np.int64(-3)", "True", "np.array(2)",
                "np.array(0.5)", "A(np.array(3))", "np.uint8(7)", "-1.5", "2+1j" if v.dtype.kind == "c" else "1.0")
        return self.pick("0", "1", "2", "3", "0.5", "2.0", "-1") if v.dtype.kind in "fc" else self.pick("0", "1", "2",
            "3", "2", "5", "0.5")

    def operand(self, v, exact=True):
        p = self.r.random()
        if p < .45:
            return self.scalar(v)
        if p < .75:
            return self.name(letters="xryh", exact=exact, condition=lambda w: w.shape == v.shape) or self.scalar(v)
        if p < .9:
            return self.name(letters="xryh", exact=exact, condition=lambda w: fits(w.shape, v.shape)) or self.scalar(v)
        if v.ndim and exact:
            k = self.name(exact=True, condition=lambda w: w.shape == v.shape)
            if k:
                return self.pick(f"{k}[..., :1]", f"{k}[:1]", f"{k}[0]", f"{k}[::-1]",
                    f"{k}.T" if v.shape == v.shape[::-1] else k)
        return self.scalar(v)

    def axis(self, v, many=True):
        options = ["None"] if many else []
        options += [str(i) for i in range(-v.ndim, v.ndim)]
        if many and v.ndim > 1:
            options += ["(0, 1)", "(0, -1)", "(-1, -2)"]
        return self.r.choice(options or ["None"])

    def cut(self, n):
        return self.pick(":", ":", "1:", ":-1", "::2", "::-1", f"{n // 3}:{n // 2 + 1}", f":{n // 2}", "t % 3:", "-3:")

    def basic(self, v):
        parts = []
        for n in v.shape:
            if n and self.chance(.2):
                parts.append(self.pick("0", "-1", f"{n // 2}", f"t % {n}"))
            else:
                parts.append(self.cut(n))
            if self.chance(.08):
                parts.append("None")
            if self.chance(.3):
                break
        if self.chance(.1):
            parts.append("...")
        return ", ".join(parts) or "..."

    def places(self, k, v):
        n = v.shape[0]
        return self.pick("[0, -1, 0]" if n else "[]", f"np.arange({n})[::-2]", f"np.arange({n}) % {n // 2 + 1}",
            f"A(np.arange({n}) * 3 % {max(n, 1)})", f"(np.arange({n}) + t) % {max(n, 1)}",
            "[0, -1], 0" if v.ndim > 1 and v.size else "[0]" if n else "[]",
            "..., [0, -1]" if v.ndim > 1 and v.size else "[-1]" if n else "[]")

    # expressions: each is (text, what it costs, whether it is exact) --------
    def unary(self, e, v):
        names = ["negative", "abs", "square", "sign", "logical_not", "positive", "isnan", "isfinite", "conj"]
        if v.dtype.kind in "fiu":
            names += ["floor", "rint", "trunc", "signbit", "ceil"]
        if v.dtype.kind in "iub":
            names += ["invert"] * 2
        if self.chance(.25) and v.dtype.kind != "b":
            f = self.pick("sin", "tanh", "arctan", "exp", "cos", "log1p", "sqrt", "cbrt", "angle", "log1p")
            e = f"np.abs({e})" if f in ("log1p", "sqrt") else f"np.clip({e}, -3, 3)" if f == "exp" else e
            return f"np.{f}({e})", "sin", False
        return self.pick(f"np.{self.r.choice(names)}({e})", f"np.{self.r.choice(names)}({e})", f"abs({e})",
            f"-{e}" if v.dtype.kind != "b" else f"~{e}"), "exact", True

    def binary(self, e, v, exact=True):
        o = self.operand(v, exact)
        symbols = ["+", "+", "+", "-", "*", "*", "/"]
        functions = ["add", "multiply", "maximum", "minimum", "maximum", "minimum", "subtract", "fmax"]
        if exact:
            symbols += ["<", ">=", "==", "!="]
            functions += ["greater", "less_equal", "logical_and", "logical_or", "not_equal"]
            if v.dtype.kind in "fiu":
                functions += ["copysign", "heaviside", "fmod", "floor_divide", "remainder"]
            if v.dtype.kind in "iub":
                symbols += ["&", "|", "^"] * 2
        sure = exact and v.dtype.kind != "c"
        if self.chance(.12):
            if v.dtype.kind in "fiu":
                return f"np.{self.pick('hypot', 'arctan2', 'logaddexp')}({e}, {o})", "sin", False
            return f"{e} ** 2", "exact", sure
        if self.chance(.55):
            s = self.r.choice(symbols)
            return (f"({e} {s} {o})" if self.chance(.75) else f"({o} {s} {e})"), "exact", sure
        extra = self.pick("", "", "", "", "", ", order='F'", ", order='C'", f", dtype={self.pick('f8', 'f4', 'c16')!r}")
        f = self.r.choice(functions)
        return f"np.{f}({e}, {o}{extra if f not in ('greater', 'less_equal', 'not_equal') else ''})", "exact", sure

    def elementwise(self):
        """An expression of one to four ufuncs, which may be used as a number or an array; or None."""
        k = self.name()
        if k is None:
            return None
        v, exact, kind, e = self.env[k], k not in self.inexact, "exact", k
        for _ in range(1 if self.plain else self.pick(1, 1, 1, 1, 2, 2, 3, 4)):
            p = self.r.random()
            if p < .35:
                e, how, sure = self.unary(e, v) if exact else (f"abs({e})", "exact", False)
            elif p < .85:
                e, how, sure = self.binary(e, v, exact)
            else:
                m = self.name(exact=True, condition=lambda w: fits(w.shape, v.shape)) or k
                how, sure = "exact", exact
                e = self.pick(f"np.where({m} > 1, {e}, {self.operand(v)})", f"np.clip({e}, -1, 2)",
                    f"({e}).clip(max=1)",
                    f"({e}).astype({self.pick('f8', 'f4', 'i4', '?', 'c16') if exact else 'c16'!r})",
                    f"np.clip({e}, {self.operand(v)}, 5)", f"np.round({e}, 1)" if exact else f"({e}) * 2",
                    f"np.where({m}, {e}, 0)", f"np.where({m} > 0, 1, {e})")
            exact, kind = exact and sure, "sin" if "sin" in (kind, how) else kind
            try:        # what the next part of the expression gets
                v = np.asarray(eval(e, self.env))
            except (TypeError, ValueError, OverflowError, IndexError):
                break
            if v.size > 400_000:
                return None
        return e, kind, exact

    def reduction(self):
        k = self.name(exact=True)
        if k is None:
            return None
        v = self.env[k]
        f = self.pick("sum", "sum", "sum", "max", "min", "mean", "prod", "any", "all", "std", "var", "argmax", "argmin",
            "count_nonzero", "ptp")
        a = self.axis(v, f not in ("argmax", "argmin") or self.chance(.3))
        if f in ("argmax", "argmin") and "(" in a:
            a = "0"
        exact = f in ("max", "min", "any", "all", "argmax", "argmin", "count_nonzero", "ptp") or f in ("sum", "prod") \
            and v.dtype.kind in "iub"
        extra = ", keepdims=True" if self.chance(.25) else ""
        if f in ("std", "var") and v.dtype == np.float16:   # of a lot of numbers it is infinite, or is not
            f = "max"
        if f in ("sum", "mean") and self.chance(.15):
            extra += f", dtype={self.pick('f8', 'f4', 'c16')!r}"
            exact = False
        if f in ("sum", "max") and self.chance(.1):
            extra += f", where={k} > 0, initial=1"
        if f == "count_nonzero" or self.chance(.5):
            e = f"np.{f}({k}, axis={a}{extra})"
        elif f == "ptp":
            e = f"np.ptp({k}, axis={a})"
        else:
            e = f"{k}.{f}(axis={a}{extra})"
        if self.chance(.15) and f in ("sum", "max", "min", "prod", "any", "all"):
            inside = self.elementwise()
            if inside and inside[2]:
                axis = self.pick("", "", ", axis=0", ", axis=-1")
                return f"np.{f}({inside[0]}{axis})", inside[1], exact and f not in ("sum", "prod")
        if self.chance(.1):
            a = "0" if a == "None" or "(" in a else a
            f = self.pick("add", "maximum", "multiply", "minimum", "logical_or")
            return f"np.{f}.{self.pick('reduce', 'accumulate')}({k}, axis={a})", "exact", v.dtype.kind in "iub"
        return e, "std", exact

    def view(self):
        k = self.name()
        if k is None:
            return None
        v = self.env[k]
        options = [f"{k}[{self.basic(v)}]"] * 6 + [f"{k}.T", f"np.transpose({k})", f"{k}[...]", f"{k}.view()"]
        options += [f"np.expand_dims({k}, 0)", f"{k}.squeeze()", f"np.flip({k})", f"{k}.real", f"{k}.imag"]
        if v.ndim > 1:
            order = list(range(v.ndim))
            self.r.shuffle(order)
            options += [f"{k}.swapaxes(0, -1)", f"np.moveaxis({k}, 0, -1)", f"{k}.transpose({order})", f"{k}.mT",
                f"{k}.diagonal()"]
        return self.r.choice(options), "exact", k not in self.inexact

    def copied(self):
        """Copies, and what may be a view or a copy, whose memory order NumPy promises."""
        k = self.name()
        if k is None:
            return None
        return self.pick(f"{k}.copy()", f"np.copy({k})", f"{k}.reshape(-1)", f"{k}.ravel()", f"{k}.ravel('K')",
            f"{k}.reshape({k}.shape[::-1])", f"{k}.copy('F')", f"{k}.flatten()", f"np.ascontiguousarray({k})",
            f"np.asfortranarray({k})", f"{k}.astype('c16')", f"{k}.astype({k}.dtype, copy=False)", f"np.array({k})",
            f"{k}.reshape(-1, order='F')", f"np.zeros_like({k})", f"np.ones_like({k}, dtype='f4')",
            f"np.full_like({k}, 3)", f"{k}.T.copy()", f"np.array({k}, order='K')"), "exact", k not in self.inexact

    def function(self):
        k = self.name(exact=True)
        if k is None:
            return None
        v = self.env[k]
        y = self.name(exact=True, condition=lambda w: w.shape == v.shape) or k
        options = [(f"np.concatenate([{k}, {y}])", "exact", True), (f"np.stack([{k}, {y}], axis=-1)", "exact", True),
            (f"np.sort({k}, axis=-1)", "sort", True), (f"np.argsort({k}, axis=-1, kind='stable')", "argsort", True),
            (f"np.cumsum({k}, axis={self.axis(v, False)})", "exact", v.dtype.kind in "iub"),
            (f"{k}.cumsum()", "exact", v.dtype.kind in "iub"), (f"np.diff({k}, axis=0)", "exact", True),
            (f"np.roll({k}, {self.pick('1', 't', '-2')}, axis=0)", "exact", True), (f"np.repeat({k}, 2, axis=0)",
            "exact", True), (f"np.tile({k}, 2)", "exact", True), (f"np.pad({k}, 1)", "exact", True),
            (f"np.take({k}, [0, -1], axis=0)", "exact", True), (f"{k}.take([0, 0, -1])", "exact", True),
            (f"np.nonzero({k})[0]", "mask", True), (f"np.unique({k})", "unique", True),
            (f"np.einsum('...i,...i', {k}, {y})", "matmul", False), (f"np.einsum('i...->...', {k})", "std", False),
            (f"np.einsum('i...->...i', {k})", "exact", True), (f"np.select([{k} > 1, {y} < 0], [{k}, {y}], 7)",
            "mask", True), (f"np.isin({k}, [1, 2])", "unique", True), (f"np.trace({k})", "exact", False),
            (f"np.tril({k})", "exact", True), (f"np.vstack([{k}, {y}])", "exact", True),
            (f"np.searchsorted(np.arange(9), {k})", "argsort", True), (f"np.append({k}, 3)", "exact", True),
            (f"np.nan_to_num({k})", "std", True), (f"np.array_equal({k}, {y})", "exact", True),
            (f"np.average({k}, axis=0)", "std", False), (f"np.rot90({k})", "exact", True),
            (f"np.linalg.norm({k})", "std", False), (f"np.hstack([{k}, {y}])", "exact", True),
            (f"np.broadcast_to({k}, (2,) + {k}.shape)", "exact", True), (f"np.divmod({k}, 3)[1]", "exact", True),
            (f"np.argwhere({k} > 2)", "mask", True), (f"np.split({k}, [1])[1]", "exact", True)]
        if v.ndim == 2 and v.shape[0] * sum(v.shape) * v.shape[1] < 800_000 or v.ndim == 1:
            options += [(f"{k} @ {y}.T", "matmul", False), (f"np.dot({k}, {y}.T)", "matmul", False),
                (f"np.matmul({k}.T, {y})" if v.ndim == 1 else f"np.tensordot({k}, {y}.T, 1)", "matmul", False)] * 2
        if v.ndim > 1:
            w = self.name(exact=True, condition=lambda w: w.ndim == 1 and w.shape[0] == v.shape[-1]) or f"{k}[0]"
            options += [(f"{k} @ {w}" if v.ndim == 2 else f"{k}.sum(axis=-1)", "matmul", False),
                (f"np.einsum('i...,i...->...', {k}, {y})", "matmul", False)]
        return self.r.choice(options)

    def fancy(self):
        k = self.name(exact=True, condition=lambda v: v.ndim > 0)
        if k is None:
            return None
        v = self.env[k]
        if self.chance(.5):
            return f"{k}[{self.places(k, v)}]", "places", True
        return self.pick(f"{k}[{k} > 1]", f"{k}[({k} != 0) & ({k} < 3)]", f"{k}[A(np.arange({v.shape[0]}) % 2 == 0)]",
            f"{k}[np.arange({v.shape[0]}) % 3 == t % 3]"), "mask", True

    def number(self):
        k = self.name(exact=True, condition=lambda v: v.dtype != np.float16)
        if k is None:
            return None
        v = self.env[k]
        real = "abs" if v.dtype.kind == "c" else ""
        return self.pick(f"float({real}({k}.sum()))", f"int({k}.argmax())", f"bool(({k} > 1).any())", f"len({k})",
            f"{k}.max().item()", f"float({real}({k}.mean()))", f"{k}.nbytes", f"{k}[{', '.join(['-1'] * v.ndim)}]",
            f"str({k}.max())", f"hash({k}.max())", f"{k}.max() > {k}.min()", f"{k}.sum() + 1",
            f"np.sqrt({k}.max() * 1)",
            f"float({k}[{', '.join(['t % 1'] * v.ndim)}].real)", f"[x.sum() for x in {k}[:3]]",
            f"{k}[:2].tolist()" if v.ndim == 1 else f"{k}.shape"), "std", False

    # statements -------------------------------------------------------------
    def write(self):
        """A statement that writes into an array, or a view of one, that outlives it."""
        h = self.names("h")
        if h and self.chance(.3):
            return self.pick(f"{h[0]}[...] = t % 7", f"{h[0]}[:1] = t % 3", f"{h[0]}.fill(t % 5)",
                f"np.add({h[0]}, 1, out={h[0]}, casting='unsafe')", f"{h[0]} = {h[0]}.copy()")
        k = self.name(exact=True)
        if k is None:
            return None
        v = self.env[k]
        target = self.pick(k, k, k, f"{k}[{self.basic(v)}]", f"{k}.T", f"{k}[::-1]", f"{k}.reshape(-1)")
        try:
            w = np.asarray(eval(target, self.env))
        except (IndexError, ValueError):
            return None
        o = self.operand(w)
        p = self.r.random()
        if p < .35:
            symbol = self.pick("+=", "-=", "*=", "+=") if v.dtype.kind in "fc" else self.pick("+=", "-=", "*=", "|=",
                "&=", "^=", "//=")
            if not target[-1].isdigit() and "reshape" in target or target.endswith(".T"):
                s = f"w0 = {target}; w0 {symbol} {o}"
            else:
                s = f"{target} {symbol} {o}"
        elif p < .5:
            s = f"{target if target != k else k + '[...]'} = {o}".replace(".T =", ".T[...] =")
            s = s.replace("reshape(-1) =", "reshape(-1)[...] =")
        elif p < .6 and v.ndim:
            where = f"{k} > {self.pick(0, 2)}" if self.chance(.5) else self.places(k, v)
            s = f"{k}[{where}] {self.pick('=', '=', '+=')} {self.scalar(v)}"
        elif p < .8:
            f = self.pick("add", "multiply", "maximum", "subtract", "minimum")
            s = self.pick(f"np.{f}({k}, {self.operand(v)}, out={k})", f"np.{f}({k}, {o}, out={target})",
                f"np.{f}({k}, {self.operand(v)}, out={k}, casting='unsafe')", f"np.clip({k}, 0, 5, out={k})",
                f"np.negative({k}, out={target})", f"np.{f}({k}, 2, out={k}, where={k} > 1)",
                f"np.copyto({k}, {self.operand(v)}, casting='unsafe')", f"np.cumsum({k}, axis=0, out={k})",
                f"np.copyto({k}, {self.operand(v)}, where={k} > 0)")
        else:
            s = self.pick(f"{k}.fill({self.scalar(v)})", f"{k}.sort()", f"np.add.at({k}, [0, 0], 1)",
                f"np.put({k}, [0, -1], 2)", f"{k}.flat[1:3] = 4", f"{k}[1:] = {k}[:-1]", f"{k}[...] = {k}[::-1]",
                f"{k}[0], {k}[-1] = {k}[-1].copy(), {k}[0].copy()", f"{k}[...] = {k} + {o}")
        if v.dtype.kind in "fc" and ("*=" in s or "multiply" in s or "cumsum" in s or "copyto" in s or chained(s)):
            s += f"; np.clip({k}, -40, 40, out={k})"
        return s

    def out(self):
        """A ufunc or reduction into an array that was made for its result."""
        got = self.pick(self.elementwise, self.elementwise, self.reduction)()
        if got is None or "where" in got[0] or not got[0].startswith("np.") or not got[0].endswith(")"):
            return None
        e, how, exact = got
        try:
            v = np.asarray(eval(e, self.env))
        except (TypeError, ValueError, OverflowError, IndexError):
            return None
        o = self.new("o")
        like = f"np.empty({v.shape}, {v.dtype.str!r}, order={self.pick('C', 'C', 'F')!r})"
        if self.chance(.2) and v.ndim:
            like = f"np.empty({v.shape[::-1]}, {v.dtype.str!r})"
            like = f"A({like}).T"
        else:
            like = f"A({like})"
        self.before(f"{o} = {like}; {o}[...] = 0")
        self.inexact |= set() if exact else {o}
        return f"{e[:-1]}, out={o})", how, exact

    def statement(self):
        p = .5 if self.plain else self.r.random()
        if p < .2:
            s = self.write()
            return s and (s, "std", "write", None, True)
        if p < .27:
            got, kind = self.out(), "out"
            if got and self.chance(.6):
                return got[0], got[1], "out", None, got[2]
        else:
            kind, make = self.r.choices([("ufunc", self.elementwise), ("reduction", self.reduction),
                    ("view", self.view),
                    ("copy", self.copied), ("other", self.function), ("places", self.fancy), ("number", self.number)],
                (45, 15, 10, 8, 15, 8, 5) if not self.plain else (80, 10, 0, 10, 0, 0, 0))[0]
            got = make()
        if got is None:
            return None
        e, how, exact = got
        if kind == "ufunc" and e.count("(") > 1:
            kind = "nested"
        elif any(k in e for k in self.unordered) or any(text in e for text in OWN_ORDER):
            kind = "other"
        if kind in ("ufunc", "nested") and self.chance(.15):
            x = self.name(letters="x")
            if x is not None and self.env[x].dtype.kind in "fc":
                return f"{x} = np.clip({e}, -9, 9)", how, "feed", x, exact
            if x is not None and self.chance(.3):
                return f"{x} = {e}", how, "feed", x, exact
            if x is not None and self.env[x].ndim:
                e = self.pick(f"{x}.T", f"{x}[::-1]", f"{x}.copy()", f"np.roll({x}, 1, axis=0)", f"{x}.swapaxes(0, -1)")
                return f"{x} = {e}", "exact", "feed", x, x not in self.inexact
        r = self.name(letters="r") if self.chance(.15) else None
        if r is None or kind in UNORDERED and r in self.ordered:
            r = self.new("r")
        return f"{r} = {e}", how, kind, r, exact

    def add_statement(self):
        for _ in range(20):
            before = dict(self.env)
            got = self.statement()
            if got is None:
                continue
            s, how, kind, name, exact = got
            largest = max((v.size * SLOW_DTYPES.get(v.dtype.char, 1) for k, v in self.env.items()
                if isinstance(v, np.ndarray) and k in s), default=0)
            parts = s.count("(") + 1
            cost = largest * (SLOW.get(how, SLOW["mask"]) + parts)
            if self.cost + cost > BUDGET and largest > 2000:
                continue
            error = self.world.run(s)
            size = max((v.size for v in self.env.values() if isinstance(v, np.ndarray)), default=0)
            if error in ("SyntaxError", "NameError") or error and self.chance(.9) or size > 700_000:
                self.env.clear()
                self.env.update(before)
                continue
            self.cost += cost
            if not exact and name:
                self.inexact.add(name)
            elif name:
                self.inexact.discard(name)
            if name and (kind in UNORDERED or kind == "feed"):
                self.unordered.add(name)
            if chained(s) and self.chance(.5):
                s = f"if t % 2: {s}" if self.chance(.1) else s
            self.body.append(s)
            if name and name[0] == "r" and error is None:
                self.use(name, kind)
            return

    # what results are used for ----------------------------------------------
    def way(self, r, kind):
        """What is done with the result `r`, each time, as a list of statements."""
        flags = "" if kind in UNORDERED else f"; rec(order({r}))"
        if flags:
            self.ordered.add(r)
        exact = r not in self.inexact
        n = self.pick(2, 3, 5, 8)
        k = self.new("k")
        ways = [[f"rec({r})"]] * 4 + [[f"rec(np.asarray({r}))" + flags]] * 3
        ways += [[f"{k}.append({r})", f"if len({k}) >= {n}: rec({k}); {k}.clear()"]] * 2
        ways += [[]] * 3 + [[f"rec(np.shape({r}))"], [f"del {r}"], [f"if t % {n} == 0: rec({r})" + flags]]
        ways += [[f"rec(np.sum({r}))"], [f"rec({r}); del {r}"], [f"{k}[:] = [{r}]"],
            [f"rec(np.ndim({r}), np.size({r}))"]]
        ways += [[f"rec(np.asarray({r}).ravel()[-1:])"], [f"rec(np.ravel({r})[:2])"], [f"rec(np.array({r}))" + flags]]
        if exact:
            ways += [[f"rec(str({r}))"], [f"rec(repr({r}))"], [f"rec(f'{{{r}}}')"], [f"rec(bool(np.any({r})))"]]
        self.before(f"{k} = []")
        return self.r.choice(ways[:9] if self.plain else ways)

    def use(self, r, kind):
        first = self.way(r, kind)
        if self.chance(.3):
            turn = self.pick(5, 28, 30, 45)
            other = self.way(r, kind)
            one, two = self.pick((f"t < {turn}", f"t >= {turn}"), (f"t < {turn}", f"t >= {turn}"),
                ("t % 2", "t % 2 == 0"))
            first = [guarded(s, one) for s in first] + [guarded(s, two) for s in other]
        where = self.after if self.chance(.6) else self.body
        deleted = [s for s in first if "del " in s]
        if deleted and where is self.after:     # after all that the others look at
            first = [s for s in first if s not in deleted]
            self.last += deleted
        elif deleted:
            del self.env[r]
        where += first
        if not deleted and not any("order(" in s for s in first) and kind not in UNORDERED:
            where.append(f"if t in (0, {ROUNDS - 1}) and {r!r} in globals(): rec({r}); rec(order({r}))")

    # what happens in the middle -----------------------------------------------
    def change(self):
        turn = self.pick(26, 30, 33)
        names = self.names(letters="x")
        x = self.r.choice(names)
        v = self.env[x]
        change = self.pick("{x} = {x}.copy()", "{x} = {x}.T", "{x} = np.asfortranarray({x})", "{x} = {x}[::-1]",
            "{x} = {x}.astype('f8')", "{x} = {x}.astype('f4')", "{x} = {x}.copy('F')",
            "{x} = {x}[:max(1, len({x}) // 2)]",
            "{x} = np.concatenate([{x}, {x}])", "{x} = {x}.reshape(-1)",
            "{x} = {x}[..., None]" if v.size < 1000 else "{x} = {x}[None]",
            "{x} = {x}.swapaxes(0, -1).copy().swapaxes(0, -1)", "{x} = {x} * 1",
            "{x} = np.broadcast_to({x}[:1], {x}.shape)",
            f"{{x}} = A({self.values(v.shape, self.r.choice(DTYPES))})", "{x} = {x}.astype('i4')",
            f"{{x}} = A({self.values(self.r.choice(SIZES[self.r.randrange(3)]), 'f8')})")
        for name in names if self.chance(.6) else [x]:
            self.body.insert(0, f"if t == {turn}: {change.format(x=name)}")

    def alias(self):
        x = self.r.choice(self.names(letters="x"))
        v = self.env[x]
        first, last = self.pick((0, 40), (10, 30), (20, 58), (28, 33))
        a = self.new("a")
        self.body.insert(0, f"if t == {first}: {a} = np.asarray({x}{self.pick('', '', '', '[...]', '.T')})")
        if self.chance(.6):
            self.after.append(f"if {first} <= t < {last}: rec({a})")
        self.alias_writes = self.chance(.5) and v.dtype.kind in "fiu"
        if self.alias_writes:
            s = self.pick(f"{a}[...] = t % 5", f"{a}[...] += 1", f"{a}[{self.basic(v)}] = 2", f"{a}.fill(3)")
            self.body.insert(self.r.randrange(1, len(self.body) + 1), f"if {first} <= t < {last}: {s}")
        self.after.append(f"if t == {last}: del {a}")

    def device_alias(self):
        x = self.r.choice(self.names(letters="x"))
        v = self.env[x]
        first, last = self.pick((0, 40), (10, 30), (20, 58), (28, 33))
        d = self.new("d")
        q = self.new("q")
        self.body.insert(0, f"if t == {first}: {q} = {x} if {x}.flags.writeable else {x}.copy(); {d} = dev({q})")
        if self.chance(.4) and not self.alias_writes:    # what an alias wrote is not there before the next use
            self.after.append(f"if {first} <= t < {last}: rec(host({d}))")
        if self.chance(.5) and v.flags.writeable and v.dtype.kind in "fiu" and not self.alias_writes:
            s = self.pick(f"{d}[...] = t % 5", f"{d}[{self.basic(v)}] = 2", f"{d}[...] *= 1")
            s = f"if {first} <= t < {last} and {d}.ndim == {v.ndim}: {s}; rec({q})"
            self.body.insert(self.r.randrange(1, len(self.body) + 1), s)
        self.after.append(f"if t == {last}: del {d}, {q}")

    def settings(self):
        """What makes the library take another way for some rounds: settings, somebody who listens, errors asked for."""
        first, last = self.pick((10, 40), (28, 32), (30, 50))
        s = self.pick("small_on_host=False", "small_on_host=True", "defer_from=None", "defer_from=200000",
            "check_indices=False", "listen=True")
        self.body.insert(0, f"if t == {first}: c0 = settings({s}); c0.__enter__()")
        self.last.append(f"if t == {last}: c0.__exit__(None, None, None); del c0")

    def program(self):
        options = {}
        if self.chance(.5):
            options["small_on_host"] = False
        if self.chance(.06):
            options["defer_from"] = self.pick(None, 100_000)
        self.some_arrays()
        if self.chance(.2) and self.names(letters="x"):
            self.in_turn()
        for _ in range(1 if self.plain else self.pick(1, 1, 2, 2, 3, 4, 5)):
            self.add_statement()
        if self.names(letters="x"):
            if self.chance(.25):
                self.change()
            if self.chance(.15):
                self.alias()
            if self.chance(.12):
                self.device_alias()
            if self.chance(.12):
                self.settings()
            inputs = ", ".join(self.names(letters="xb"))
            every = self.pick(1, 1, 7, 0)
            if every:
                self.after.append(f"if t % {every} == 0: rec({inputs})" if every > 1 else f"rec({inputs})")
        return {"options": options, "setup": self.setup, "body": self.body + self.after + self.last}


def fits(shape, other):
    return len(shape) <= len(other) and all(n in (1, m) for n, m in zip(shape[::-1], other[::-1]))


def chained(s):
    """Whether a statement gives an array that it read to the next round, which may grow."""
    return any(text in s for text in ("+=", "out=", "-=", "[...] ="))


def guarded(s, condition):
    return f"if {condition} and {s[3:]}" if s.startswith("if ") else f"if {condition}: {s}"


class Near(Values):
    """Values of an array that is compared at once: no copy."""

    def __eq__(self, other):
        a, b = self.a, other.a
        if a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b):
            return True
        return super().__eq__(other)

    __hash__ = None


def value(x):
    if isinstance(x, np.ndarray):
        return ("array", x.dtype.str, tuple(x.shape), Near(np.asarray(x)))
    if isinstance(x, float):        # of what may be a number in single precision
        return ("float", Near(np.array(x, np.float32)))
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [value(v) for v in x])
    return common.value(x)


def order(x):
    """The memory order of an array: its flags, and its strides along what is longer than one."""
    if not isinstance(x, np.ndarray) or not x.size:
        return ()
    strides = [step for step, n in zip(x.strides, x.shape) if n > 1]
    return bool(x.flags.c_contiguous), bool(x.flags.f_contiguous), strides


class Plain(World):
    def __init__(self, lazy):
        super().__init__(lazy)
        self.names["order"] = order
        self.names["settings"] = self.settings

    def settings(self, listen=False, **options):
        if not self.lazy:
            return contextlib.nullcontext()
        import lazyarray
        return lazyarray.trace() if listen else lazyarray.options(**options)

    def rec(self, *objects):
        self.log += [value(o) for o in objects]


KNOWN = ()      # what differs for a reason that is noted already: read from known.txt


def execute(program, rounds=ROUNDS):
    """The first difference between the worlds that a loop shows, or None."""
    import lazyarray
    with warnings.catch_warnings(), np.errstate(all="ignore"), lazyarray.options(**program["options"]):
        warnings.simplefilter("ignore")
        n, lazy = Plain(False), Plain(True)
        body = [(s, compile(s, "<loop>", "exec")) for s in program["body"]]
        for t in range(-1, rounds):
            n.names["t"] = lazy.names["t"] = t
            for s, code in [(s, s) for s in program["setup"]] if t < 0 else body:
                a, b = n.run(code), lazy.run(code)
                if d := step_difference(n, lazy, a, b, s):
                    return d[0], f"round {t}, {d[1]}"
                if a is None and s[2:5] == " = ":
                    x, y = n.names[s[:2]], lazy.names[s[:2]]
                    if isinstance(x, np.ndarray) and (y.shape != x.shape or y.dtype != x.dtype):
                        return ("kind", f"round {t}, {s!r}: NumPy {x.dtype} {x.shape}, lazy {y.dtype} {y.shape}")
        return final_difference(n, lazy, [k for k in n.names if k[0] in "xborkh" and k[1:].isdigit()])


def alone(program):
    """The difference that a loop shows in a process of its own, where nothing was learned before it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(program, file)
    try:
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--program", file.name], capture_output=True,
            text=True, check=False, timeout=120)
    finally:
        os.unlink(file.name)
    if done.returncode:
        return ("died", done.stderr[-500:])
    return json.loads(done.stdout.splitlines()[-1])


def smaller(program, d):
    """Fewer statements that differ in the same way when they run alone."""
    lines = [("setup", s) for s in program["setup"]] + [("body", s) for s in program["body"]]

    def whole(some):
        return {**program, "setup": [s for part, s in some if part == "setup"],
            "body": [s for part, s in some if part == "body"]}

    def same(some):
        got = alone(whole(some))
        return got is not None and got[0] == d[0]

    return whole(minimise(lines, same, 40))


def text_of(program):
    lines = [f"lazyarray.options.set(**{program['options']})"] * bool(program["options"])
    return "\n".join([*lines, *program["setup"], f"for t in range({ROUNDS}):", *("    " + s for s in program["body"])])


def generate(seed):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return Gen(seed).program()


def child(first, last):
    global KNOWN
    KNOWN, left_out = known("known_hot.txt")
    limit_memory()
    statements = differing = 0
    for seed in sorted({*range(first, last)} - left_out):
        print("seed", seed, flush=True)
        program = generate(seed)
        statements += len(program["body"])
        d = execute(program)
        if d and not any(text in str(d[1]) for text in KNOWN):
            differing += 1
            again = alone(program)
            if again:
                program = smaller(program, again)
            note = "" if again else " (not alone: only after the seeds before it)"
            print(f"=== {seed} {d[0]}{note}: {str(d[1])[:900]}\n{text_of(program)}", flush=True)
    print("count statements", statements)
    print("count loops", last - first)
    print("count differing", differing)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "--program":
        limit_memory()
        with open(sys.argv[2]) as file:
            print(json.dumps(execute(json.load(file))))
    elif sys.argv[1] == "--show":
        program = generate(int(sys.argv[2]))
        print(text_of(program))
        print(alone(program))
    else:
        first = int(sys.argv[1])
        last = int(sys.argv[2]) if len(sys.argv) > 2 else first + 100
        totals = driver(os.path.abspath(__file__), (first, last), batch=50, timeout=600)
        sys.exit(bool(totals.get("differing") or totals.get("crashes")))
