"""Recipes of the ndarray members: programs on ``x`` and its friends (grammar: recipes.py).

A line that is no expression is executed, and what it leaves in ``r`` is the result.
"""

from __future__ import annotations

import copy
import io
import operator
import os
import pickle
import sys
import tempfile
from typing import Any

from parity import NAMES, Case, program_case


def _match(value: Any) -> Any:
    match value:
        case [first, *_, last]:
            return first, last
        case _:
            return "no sequence"


def _attempt(call: Any, *args: Any) -> Any:
    """The result, or the name of the error: for what raises in the middle of a program."""
    try:
        return call(*args)
    except Exception as error:  # noqa: BLE001  any error is the answer here
        return type(error).__name__


def _path() -> str:
    """A file to write to, the same one each time."""
    return os.path.join(tempfile.gettempdir(), f"parity-{os.getpid()}.bin")


#: Names in executed code count as references from Python 3.14 on, so that NumPy resizes no array that has one.
UNCHECKED = ", refcheck=False" if sys.version_info >= (3, 14) else ""

NAMES.update(copy=copy, io=io, operator=operator, pickle=pickle, match=_match, attempt=_attempt, path=_path)

_ARITHMETIC = (
    "x {0} y\nx {0} dy\nx {0} row\nx {0} 2\nx {0} 2.5\nx {0} s\nx {0} hy\ns {0} s\nx {0} True\nx {0} lrow\nx {0} v\n"
    "x {0} 'a'\nx {0} None  # host: objects\nx {0} np.float32(2)\nx {0} weights\np {0} q\nx[:2] {0} y[:2]\n"
    "x {0} np.int8(3)\n"
    "x.T {0} y.T"
)
_REFLECTED = (
    "2 {0} x\n2.5 {0} x\nhx {0} y\nlrow {0} x\nnp.float64(2) {0} x\n1j {0} x\nnp.int8(3) {0} x\n2 {0} p\n"
    "'a' {0} x\nTrue {0} s"
)
_INPLACE = (
    "r = x; r {0} y\n"
    "r = x; r {0} 2\nr = x; r {0} row\nr = x; r {0} 2.5\nr = x; r {0} hy\n"
    "r = hx; r {0} y  # host: written to an ndarray\nr = x; r {0} dy\n"
    "r = x[1:]; r {0} 1\nr = s; r {0} s\nr = x; r {0} v\nr = x.T; r {0} y.T\nr = of; r {0} x\n"
    "r = x; r {0} lrow\n r = p; r {0} q\n x[0] {0} 2\n r = x; r {0} x[::-1]\n r = x; r {0} weights"
)
_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_COMPARISONS = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}

_MATMUL = "x @ k\n m @ n\n v @ w\n t @ k\n x @ y\n x @ 2\n m @ hm\n s @ s\n m @ row\n m @ lm\n m.T @ n"
_REDUCE = (
    "x.{0}()\nx.{0}(axis=0)\nx.{0}(1, keepdims=True)\nt.{0}((0, 2))\nx.{0}(5)\nx.{0}(0, out=orow)\ns.{0}()\n"
    "nans.{0}()\nv.{0}(-1)\nx.{0}(axis=1, where=mask)\nx[1:].{0}(axis=0)"
)
_INITIAL = "\n x.{0}(initial=3)\n x.{0}(axis=0, initial=2, where=mask)"

MEMBERS: dict[str, str] = {
    **{f"__{name}__": _ARITHMETIC.format(sign) for name, sign in _OPERATORS.items()},
    **{f"__r{name}__": _REFLECTED.format(sign) for name, sign in _OPERATORS.items()},
    **{f"__i{name}__": _INPLACE.format(sign + "=") for name, sign in _OPERATORS.items()},
    **{
        f"__{name}__": f"{_ARITHMETIC}\n nans {{0}} nans\n 2 {{0}} x\n hx {{0}} y".format(sign)
        for name, sign in _COMPARISONS.items()
    },
    "__pow__": _ARITHMETIC.format("**")
    + "\n x ** -1\n x ** 0.5\n x ** 3\n pow(x, 2)\n attempt(pow, x, 2, 3)\n p ** -2",
    "__divmod__": (
        "divmod(x, y)\ndivmod(x, 2)\ndivmod(x, row)\ndivmod(x, 2.5)\ndivmod(s, s)\ndivmod(x, hy)\n"
        "divmod(x, 'a')"
    ),
    "__rdivmod__": "divmod(2, x)\n divmod(hx, y)\n divmod(2.5, x)\n divmod('a', x)",
    "__matmul__": _MATMUL,
    "__rmatmul__": "hm @ n\n lm @ m\n 2 @ x\n hx @ k",
    "__imatmul__": "r = m; r @= n\n r = m; r @= hm\n r = x; r @= k\n r = m; r @= 2\n r = v; r @= w",
    "__neg__": "-x\n -s\n -nans\n -x.T",
    "__pos__": "+x\n +s\n (+x) is x",
    "__abs__": "abs(x)\n abs(s)\n abs(nans)",
    "__invert__": "~x\n ~s\n ~mask",
    "__bool__": "bool(x)\n bool(s)\n bool(v[:1] if v.ndim else v)\n bool(a([]))\n not a([[0]])",
    "__int__": "int(s)\n int(x)\n int(a([3]))\n int(a([[2.5]]))\n int(a(2.7))",
    "__float__": "float(s)\n float(x)\n float(a([3]))\n float(a(2))",
    "__complex__": "complex(s)\n complex(x)\n complex(a(2.5))",
    "__index__": (
        "operator.index(s)\noperator.index(x)\n[10, 20, 30][a(1)]\noperator.index(a([1]))\nrange(a(3))\n"
        "operator.index(a(True))\n[1, 2, 3][a(0):a(2)]"
    ),
    "__len__": "match(v)\n match(x)\n match(s)\n len(x)\n len(v)\n len(s)\n len(t)",
    "__contains__": "3 in x\n x.ravel()[0] in x\n s in x\n 'q' in x\n row in x\n None in x\n np.nan in nans",
    "__iter__": (
        "list(v)\nlist(x)\n[item for item in s]\n[float(item) for item in v]\nlist(zip(v, w))\n"
        "first, *rest = v; r = first\nsum(v)\ndict(enumerate(v))\nlist(reversed(v))\nmax(v)"
    ),
    "__getitem__": (
        "x[0]\nx[0, 1]\nx[-1, -1]\nx[1:]\nx[..., 0]\nx[:, None]\nx[::-1, ::2]\nx[[0, 2]]\nx[i2]\nx[mask]\n"
        "x[x > 1]\nx[i[:3], i[:3]]\nx[9]\nx[0, 9]\nx[far]\nx[()]\ns[()]\ns[...]\ns[None]\nx[:, i]\n"
        "x[:, near]\n"
        "x[0, 0, 0]\nx[1.5]\nx['a']\nv[vmask]\nv[2]\nv[a(2)]  # host: the number is read\nv[np.int64(1)]\n"
        "v[True]\nv[hi]\nx[hmask]\n"
        "t[0, :, [1, 2]]\nt[:, a([0, 1]), 1:]\nv[[]]\nv[a([], 'i8')]\nx[[True, False, True]]\n"
        "x[:, [False] * 4]\nx[None, ..., 0:2]\n"
        "rec['a']\nrec[['b', 'a']]\nrec[0]\nrec['q']\nrec['b'][1]\nx[1][2]\nx[a([[0, -1], [1, 2]]), 1:3]\n"
        "x[np.newaxis, [0]]\nv[vmask[:3]]\nx[mask, 0]\nv[i][::2]\n"
        "x[slice(a(0), a(2))]  # host: the numbers are read\nx[a([0.])]\n"
        "x[np.ix_([0, 2], [1, 3])]\nx[mask[0]]\nx[:, mask[0]]\nx[0][...]\nt[..., mask[0]]\n"
        "v[[0, 1], [0, 1]]"
    ),
    "__setitem__": (
        "x[0] = 5\nx[0, 1] = 7\nx[1:] = y[1:]\nx[...] = row\nx[mask] = 3\nx[mask] = y[mask]\n"
        "x[[0, 2]] = row\nx[i2[0], i2[1]] = 9\nv[[0, 0, 0]] = [1, 2, 3]\nv[a([1, 1, 4])] = w[:3]\n"
        "x[9] = 1\nv[far] = 1\nv[near] = 1\n"
        "x[:] = v\nx[::2] = hx[::2]\nx[:, 0] = 1.5\ns[()] = 4\ns[...] = 5\nx[x > 0] = 0\n"
        "hx[0] = row  # host: written to an ndarray\n"
        "hx[mask] = y[mask]  # host: written to an ndarray\nx[hmask] = hy[hmask]\nx[1:] = x[:-1]\n"
        "x[::-1] = x\nx[0] = 'a'\nx[0] = None\n"
        "x['a'] = 1\nrec['a'] = 7\nrec[0] = (9, 9.5)\n"
        "x[[True, False, True]] = 2\nx.T[0] = 8\nt[:, [0, 1], 0] = 6\nv[v.argsort()] = w\n"
        "x[mask] = [1, 2]\nx[0] = 2j\nx[0] = 300\nx[0] = -1\nx[None, 0] = 3\nx[0] = lrow\nv[[]] = []\n"
        "v[i] = s\nx[:, mask[0]] = 4\nx[1.5] = 1\nx[0] = np.nan\n"
        "rec[['a']] = a([(1,), (2,), (3,)], [('a', 'i8')])\nv[True] = 1\nx[0, 1, 2] = 3"
    ),
    "__delitem__": "del x[0]\n attempt(operator.delitem, v, 0)",
    "__copy__": "copy.copy(x)\n copy.copy(s)\n x.__copy__()\n copy.copy(x.T).strides",
    "__deepcopy__": "copy.deepcopy(x)\n copy.deepcopy([x, x])\n copy.deepcopy(x.T)\n x.__deepcopy__({})",
    "__reduce__": (
        "pickle.loads(pickle.dumps(x))\npickle.loads(pickle.dumps(x.T, 2))\n"
        "pickle.loads(pickle.dumps([s, v]))\npickle.loads(pickle.dumps(x.T)).flags.f_contiguous"
    ),
    "__reduce_ex__": (
        "pickle.loads(pickle.dumps(x, 5))\npickle.loads(pickle.dumps(x, 0))\n"
        "pickle.loads(pickle.dumps(x[0] if x.ndim else x, 5))"
    ),
    "__setstate__": "r = x.copy(); r.__setstate__(hx.__reduce__()[2])\n attempt(x.__setstate__, 3)",
    "__sizeof__": "x.__sizeof__() > 0",
    "__repr__": (
        "repr(x)\nrepr(s)\nrepr(v)\nrepr(t)\nrepr(nans)\nrepr(a(np.arange(2000.)))\n"
        "repr(a(np.arange(9900).reshape(99, 100)))\nrepr(a(np.zeros((0, 3))))\nrepr(x[0])\nrepr([x, s])"
    ),
    "__str__": "str(x)\n str(s)\n str(v)\n str(nans)\n str(a(np.arange(2000.)))\n f'{x}'\n '%s' % (x,)\n str(x[0])",
    "__format__": (
        "f'{s:}'\nformat(x)\nformat(x, '.2f')\nformat(s, '.2f')\nformat(x.sum(), '.3f')\nf'{v[0]!r}'\n"
        "format(a(3), '05d')"
    ),
    "__hash__": "attempt(hash, x)\n x.__hash__ is None\n hash(x.ravel()[0])\n {x.ravel()[0]: 1}[hx.ravel()[0]]",
    "__array__": (
        "np.asarray(x).dtype\ntype(np.asarray(x)).__name__\nx.__array__().shape\nx.__array__('f4').dtype\n"
        "np.asarray(x, 'f4').dtype\nnp.array(x, copy=True).sum()\nx.__array__(copy=False).dtype\n"
        "attempt(lambda: x.__array__('c16', copy=False))\nnp.array(x, ndmin=4).shape\n"
        "np.asarray(x, order='F').flags.f_contiguous\nnp.asarray([x, x]).shape\nnp.array([v, w]).dtype"
    ),
    "__array_finalize__": "x.__array_finalize__(None)\n x.__array_finalize__ is None",
    "__array_wrap__": (
        "x.__array_wrap__(hx).ndim\nx.__array_wrap__(hx).shape\n"
        "x.__array_wrap__(hx, None, False).dtype"
    ),
    "__array_ufunc__": (
        "x.__array_ufunc__(np.add, '__call__', x, y)\nx.__array_ufunc__(np.add, 'reduce', x, axis=0)\n"
        "x.__array_ufunc__(np.add, '__call__', x, y, out=(ox,))"
    ),
    "__array_function__": (
        "x.__array_function__(np.sum, (np.ndarray,), (x,), {})\n"
        "x.__array_function__(np.sum, (np.ndarray,), (x,), {'axis': 0})"
    ),
    "__array_interface__": (
        "x.__array_interface__['shape']\nx.__array_interface__['typestr']\nx.__array_interface__['version']\n"
        "sorted(x.__array_interface__)"
    ),
    "__array_struct__": "type(x.__array_struct__).__name__\n type(s.__array_struct__).__name__",
    "__array_priority__": "x.__array_priority__",
    "__array_namespace__": (
        "x.__array_namespace__().asarray([1, 2]).shape\n"
        "attempt(lambda: x.__array_namespace__(api_version='nope'))"
    ),
    "__buffer__": (
        "memoryview(x).format\nmemoryview(x).tobytes()\nmemoryview(x.T).shape\nbytes(x.ravel())\n"
        "memoryview(x).readonly\nlen(memoryview(v))\nbytearray(v)"
    ),
    "__class_getitem__": "np.ndarray[int, np.dtype]",
    "__dlpack__": (
        "np.from_dlpack(x).dtype\nnp.from_dlpack(x).shape\nnp.from_dlpack(x[1:] if x.ndim else x).sum()\n"
        "type(x.__dlpack__()).__name__\nattempt(lambda: x.__dlpack__(copy=True) is None)"
    ),
    "__dlpack_device__": "isinstance(x.__dlpack_device__(), tuple)\n len(x.__dlpack_device__())",
    "T": "x.T\n t.T\n v.T\n s.T\n x.T.T is x\n x.T[0]\n x.T = y",
    "mT": "x.mT\n t.mT\n v.mT\n s.mT",
    "all": _REDUCE.format("all"),
    "any": _REDUCE.format("any"),
    "sum": (_REDUCE + _INITIAL).format("sum")
    + "\n x.sum(0, None, orowf)\n x.sum(dtype='f4')\n x.sum(0, 'f8', None, True)",
    "prod": (_REDUCE + _INITIAL).format("prod") + "\n p.prod(0, 'f8')",
    "max": (_REDUCE + _INITIAL).format("max"),
    "min": (_REDUCE + _INITIAL).format("min"),
    "mean": _REDUCE.format("mean") + "\n x.mean(0, None, orowf)\n x.mean(0, 'f8')",
    "std": _REDUCE.format("std") + "\n x.std(ddof=1)\n x.std(0, 'f8', None, 1)\n x.std(correction=1)",
    "var": _REDUCE.format("var") + "\n x.var(ddof=1)\n x.var(0, mean=row)",
    "argmax": (
        "x.argmax()\nx.argmax(0)\nx.argmax(axis=-1, keepdims=True)\nx.argmax(5)\nx.argmax(0, out=orowi)\n"
        "s.argmax()\nnans.argmax(1)\nfew.argmax(1)"
    ),
    "argmin": (
        "x.argmin()\nx.argmin(0)\nx.argmin(axis=-1, keepdims=True)\nx.argmin(5)\nx.argmin(0, orowi)\n"
        "s.argmin()\nnans.argmin(1)\nfew.argmin(1)"
    ),
    "argpartition": (
        "x.argpartition(1).shape\nx.argpartition(1, axis=0).dtype\nx.argpartition(9)\n"
        "v.argpartition([1, 2]).shape"
    ),
    "argsort": (
        "x.argsort()\nx.argsort(0)\nx.argsort(None, kind='stable')\nv.argsort(kind='stable')\nx.argsort(5)\n"
        "few.argsort(1, stable=True)\ns.argsort()"
    ),
    "astype": (
        "x.astype('f4')\nx.astype('i8')\nx.astype('c16')\nx.astype('?')\nx.astype(dt, copy=False)\n"
        "x.astype(dt, copy=False) is x\nx.astype('f8', order='F').strides\nx.astype('i1', casting='safe')\n"
        "x.astype('S4')  # host: strings\nx.astype(object)  # host: objects\n"
        "x.astype('M8[s]')  # host: datetimes\n"
        "x.T.astype('f4').strides\nx.astype(float, subok=False)\n"
        "nans.astype('i4', casting='unsafe').shape\nx.astype('nope')\nx.astype('>f4')  # host: byte order\n"
        "s.astype('f4')\nx.astype('g')  # host: long double\nx.astype('u1')\nx.astype('f2')\n"
        "x.astype('f4', 'C').strides\nx.astype(dt, 'K', 'no', True, True)"
    ),
    "base": (
        "x.base is None\nx[1:].base is None\nx.copy().base is None\nx.T.base is x\nx[1:][0].base is x\n"
        "x.reshape(-1).base is None"
    ),
    # NumPy itself crashes on swapped bytes of variable strings.
    "byteswap": "None if dt.kind == 'T' else x.byteswap()\n r = x; dt.kind == 'T' or r.byteswap(True)\n"
    "None if dt.kind == 'T' else s.byteswap()\n dt.kind == 'T' or x.byteswap(inplace=True) is x",
    "choose": (
        "i2.choose([row[:3], row[1:], 7])\n(i2 % 3).choose([row[:3], row[1:], 7])\nmask.choose([x, y])\n"
        "mask.choose([x, y], out=ox)\ni.choose([row, 1], mode='clip')"
    ),
    "clip": (
        "x.clip(0, 1)\nx.clip(y, p)\nx.clip(min=0)\nx.clip(max=1)\nx.clip(0, 1, out=ox)\nx.clip(None, 1)\n"
        "x.clip()\nnans.clip(0, 1)\ns.clip(0, 1)\nx.clip(0, 1, of)\nx.clip(-300, 300)\nx.clip(0, 1, dtype='f8')"
    ),
    "compress": (
        "x.compress([True, False, True], 0)\nv.compress(vmask)\nx.compress([0, 1], axis=1)\n"
        "v.compress(vmask, out=out((4,)))\nv.compress([1] * 9)"
    ),
    "conj": "x.conj()\n s.conj()\n x.conj() is x",
    "conjugate": "x.conjugate()\n s.conjugate()\n x.conjugate(ox)",
    "copy": (
        "x.copy()\nx.copy('F').strides\nx.T.copy().strides\nx.T.copy(order='K').strides\ns.copy()\n"
        "x.copy('Q')\nx.copy(order='A')"
    ),
    "ctypes": (
        "x.ctypes.shape[:] == [*x.shape]\nx.ctypes.strides[:] == [*x.strides]\n"
        "x.ctypes.data == np.asarray(x).ctypes.data"
    ),
    "cumprod": "p.cumprod()\n p.cumprod(0)\n x.cumprod(1, 'f8')\n x.cumprod(0, out=oacc)\n x.cumprod(5)",
    "cumsum": "x.cumsum()\n x.cumsum(0)\n x.cumsum(1, 'f8')\n x.cumsum(0, out=oacc)\n x.cumsum(5)\n s.cumsum()",
    "data": (
        "x.data.tobytes()\nx.data.shape\nx.data.format\nx.data.readonly\nv.data[0]\ns.data.ndim\n"
        "type(x.data).__name__"
    ),
    "device": "x.device\n s.device",
    "diagonal": (
        "x.diagonal()\nx.diagonal(1)\nt.diagonal(0, 1, 2)\nv.diagonal()\n"
        "x.diagonal(offset=-1).flags.writeable\nx.diagonal()[0]"
    ),
    "dot": "x.dot(k)\n v.dot(w)\n x.dot(2)\n x.dot(y)\n x.dot(k, out=out((3, 3)))\n x.dot(hm)\n s.dot(x)",
    "dtype": "x.dtype\n x.dtype is y.dtype\n x.dtype.name\n s.dtype",
    "dump": "r = io.BytesIO(); x.dump(r); r = pickle.loads(r.getvalue())",
    "dumps": "pickle.loads(x.dumps())\n type(s.dumps()).__name__",
    "fill": (
        "x.fill(3)\nx.fill(s)\ns.fill(2)\nx[1:].fill(7)\nx.fill('a')\nx.fill(2.5)\nx.T.fill(1)\nx.fill(300)\n"
        "x.fill(row)\nx.fill(None)"
    ),
    "flags": (
        "x.flags\nx.T.flags\nx[::2].flags.c_contiguous\nx.flags.writeable\nx.flags['OWNDATA']\n"
        "x[1:].flags.owndata\nx.flags.writeable = False; x[0] = 1\n"
        "x.flags.writeable = False; r = x.flags.writeable\ns.flags.num\nx.flags.aligned\nx.flags.fnc\n"
        "x.flags['WRITEABLE'] = False; r = x[1:].flags.writeable\nx.copy().flags.behaved"
    ),
    "flat": (
        "list(x.flat)\nx.flat[1]\nx.flat[1:5]\nx.flat[[0, 3]]\nx.flat = 3\nx.flat = [1, 2]\nx.flat[2] = 9\n"
        "x.flat[1:3] = row\nlen(x.flat)\nx.flat.index\nx.flat.coords\nnext(x.flat)\nx.flat.copy()\n"
        "np.asarray(x.flat).shape\nx.flat[99]\nx.flat.base is x\nx.T.flat[1]\nx.flat[mask.ravel()]\ns.flat[0]\n"
        "x.flat == y.flat"
    ),
    "flatten": "x.flatten()\n x.flatten('F')\n x.T.flatten('K')\n x.T.flatten('A')\n s.flatten()\n x.flatten('Q')",
    "getfield": (
        "x.getfield(dt)\nx.getfield('u1')\nx.getfield('u1', 1 if dt.itemsize > 1 else 0)\n"
        "x.getfield('f8', 99)\noc.getfield('f8', 8)"
    ),
    "imag": "x.imag\n s.imag\n x.imag = 3\n oc.imag = weights\n x.imag.flags.writeable\n x.imag[0]",
    "real": "x.real\n s.real\n x.real = 3\n oc.real = weights\n x.real is x\n x.real[0]",
    "item": (
        "x.item(0)\nx.item(1, 2)\ns.item()\nx.item()\na([3]).item()\nx.item((1, 1))\nx.item(99)\nv.item(-1)\n"
        "type(x.item(0)).__name__"
    ),
    "itemsize": "x.itemsize\n s.itemsize",
    "nbytes": "x.nbytes\n s.nbytes\n x[1:].nbytes",
    "ndim": "x.ndim\n s.ndim\n x[None].ndim",
    "nonzero": "x.nonzero()\n few.nonzero()\n s.nonzero()\n mask.nonzero()",
    "partition": (
        "v.partition(2); r = v[2]; v.sort()\nx.partition(1, axis=0); r = x[1]; x.sort(0)\nx.partition(99)\n"
        "v.partition(1, kind='nope')"
    ),
    "put": (
        "v.put(i, 5)\nv.put([0, 0], [1, 2])\nx.put([1, 3], w)\nv.put(far, 1)\nv.put(far, 1, 'wrap')\n"
        "v.put(far, 1, mode='clip')"
    ),
    "ravel": (
        "x.ravel()\nx.ravel('F')\nx.T.ravel()\nx.T.ravel('K')\ns.ravel()\nx.ravel('A')\nx.ravel()[0]\n"
        "x.ravel('Q')"
    ),
    "repeat": "x.repeat(2)\n x.repeat(2, axis=0)\n x.repeat([1, 0, 2], 0)\n v.repeat(counts)\n x.repeat(-1)",
    "reshape": (
        "x.reshape(4, 3)\nx.reshape((2, 6))\nx.reshape(-1)\nx.reshape(2, -1, order='F')\nx.T.reshape(12)\n"
        "x.reshape(5)\nx.reshape(12, copy=False)\nx.T.reshape(12, copy=False)\nx.reshape()\ns.reshape(1, 1)\n"
        "x.reshape(12).base is None\nx.reshape(None)\nx.reshape((4, 3), copy=True)"
    ),
    "resize": (
        f"r = x.copy(); r.resize(2, 3{UNCHECKED})\nr = v[:]; r.resize(3)\n"
        "r = x.copy(); r.resize((5, 5), refcheck=False)\n"
        "r = x.copy(); r.resize(4, 5, refcheck=False); r = r.shape\nr = x.copy(); r.resize(-1)\n"
        "r = v.copy(); r.resize(9, refcheck=False)"
    ),
    "round": "x.round()\n x.round(1)\n x.round(-1)\n x.round(0, ox)\n s.round(1)\n x.round(decimals=2, out=of)",
    "searchsorted": (
        "sv.searchsorted(v)\nsv.searchsorted(1, 'right')\n"
        "sv.searchsorted(v, side='left', sorter=a([0, 1, 2, 3, 4, 5]))\nx.searchsorted(v)\nsv.searchsorted(hv)"
    ),
    "setfield": "x.setfield(1, dt)\n x.setfield(1, 'u1')\n x.setfield(1, 'f8', 99)\n oc.setfield(2.5, 'f8', 8)",
    "setflags": (
        "x.setflags(write=False); r = x.flags.writeable\nx.setflags(write=False); x[0] = 1\n"
        "x.setflags(align=True)\nx.setflags(0); x.setflags(write=True); r = x.flags.writeable\n"
        "x[1:].setflags(write=False); r = x.flags.writeable\nx.setflags(uic=True)"
    ),
    "shape": (
        "x.shape\ns.shape\nr = x.copy(); r.shape = (4, 3)\nr = x.copy(); r.shape = -1\n"
        "r = x.copy(); r.shape = (5,)\nr = x[:]; r.shape = (2, 6)\nr = x.copy('F').T; r.shape = 12"
    ),
    "size": "x.size\n s.size\n x[:0].size",
    "sort": (
        "r = x; r.sort()\nx.sort(0)\nx.sort(axis=-1, kind='stable')\nx.sort(axis=5)\nnans.sort()\n"
        "x[::-1].sort(0)\nv.sort(kind='nope')\nx.sort(None)\ns.sort()\nx.T.sort()\nfew.sort(stable=True)"
    ),
    "squeeze": "col.squeeze()\n col.squeeze(1)\n x.squeeze(0)\n x[None].squeeze(axis=(0,))\n s.squeeze()",
    "strides": (
        "x.strides\nx.T.strides\nx[::2].strides\ns.strides\n"
        "r = x.copy(); r.strides = (dt.itemsize, dt.itemsize)\nr = x.copy(); r.strides = (99999, 8)"
    ),
    "swapaxes": "x.swapaxes(0, 1)\n t.swapaxes(-1, 0)\n x.swapaxes(0, 5)",
    "take": (
        "v.take(i)\nx.take(i, axis=1)\nv.take(far)\nv.take(far, mode='wrap')\nv.take(near, mode='clip')\n"
        "x.take(2)\nx.take(i, 1, ox)\nx.take([[0, 1]], 0)"
    ),
    "to_device": (
        "x.to_device('cpu').shape\nattempt(lambda: x.to_device('gpu'))\n"
        "attempt(lambda: x.to_device('cpu', stream=1))"
    ),
    "tobytes": "x.tobytes()\n x.tobytes('F')\n x.T.tobytes()\n x.tobytes(order='A')\n s.tobytes()\n x[::-1].tobytes()",
    "tofile": (
        "r = path(); x.tofile(r); r = np.fromfile(r, 'u1').tobytes()\nx.tofile('/nonexistent/file')\n"
        "r = path(); v.tofile(r, sep=',', format='%s'); r = open(r).read()"
    ),
    "tolist": "x.tolist()\n s.tolist()\n v.tolist()\n t.tolist()",
    "trace": "m.trace()\n x.trace(1)\n t.trace(0, 1, 2)\n v.trace()\n m.trace(dtype='f8')\n t.trace(out=out((4,)))",
    "transpose": (
        "x.transpose()\nt.transpose(2, 0, 1)\nt.transpose((1, 0, 2))\nx.transpose(0, 0)\nx.transpose(None)\n"
        "t.transpose(-1, 0, 1)"
    ),
    "view": (
        "x.view()\nx.view('u1')\nx.view('i4')\nx.view(dt)\nx.view(np.ndarray)\nv.view('i2')\nx.T.view('u1')\n"
        "s.view('u1')\nx.view('S3')  # host: strings\nx.view('nope')\ntype(x.view(type=np.matrix)).__name__\n"
        "weights.view('i8')\noc.view('f8')\nx.view(dtype='M8[s]')  # host: datetimes\n"
        "x.view(np.recarray).shape  # host: another class"
    ),
}

#: Members of ``object`` and type machinery that are the class's own.
NOT_TESTED: dict[str, str] = {
    "__class__": "reports numpy.ndarray; tests of the array itself",
    "__new__": "a constructor of the class",
    "__init__": "a constructor of the class",
    "__init_subclass__": "of the class",
    "__subclasshook__": "of the class",
    "__getattribute__": "every program uses it",
    "__setattr__": "every setter uses it",
    "__delattr__": "no ndarray member can be deleted",
    "__dir__": "the completeness test compares the lists",
    "__doc__": "text",
    "__getstate__": "of object",
    "_set_dtype": "private to NumPy",
    "_set_shape": "private to NumPy",
}

#: Members that hand the values to the host, or read them one at a time: that is what they are for.
HOST_MEMBERS: frozenset[str] = frozenset(
    "__array__ __array_interface__ __array_struct__ __array_wrap__ __bool__ __buffer__ __complex__ __contains__"
    " __dlpack__ __float__ __format__ __hash__ __index__ __int__ __iter__ __len__"
    " __reduce__ __reduce_ex__ __repr__ __setstate__ __str__ byteswap ctypes data dump dumps flat item"
    " tobytes tofile tolist".split()
)
#: Members that a value may come to from outside.
TAKES_VALUES = frozenset(("__contains__", "byteswap", "flat"))

KINDS = dict.fromkeys(("sum", "prod", "mean", "std", "var", "cumsum", "cumprod", "trace", "dot"), "reduction")


def cases_of(name: str) -> list[Case]:
    """The cases of one member."""
    kind = "reduction" if "matmul" in name else KINDS.get(name, "elementwise")
    lines = [line.strip() for line in MEMBERS[name].splitlines() if line.strip()]
    settings = {"kind": kind, "lazy": name not in HOST_MEMBERS, "parameters": int(name in TAKES_VALUES)}
    return [program_case(line, **settings) for line in lines]
