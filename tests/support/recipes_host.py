"""Recipes of what has no device version: files, text, strings, dates, records (grammar: recipes.py)."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import numpy.lib.recfunctions as rf
import numpy.polynomial.polynomial as npp

_STRING = "words\n raw\n text\n x\n lx\n"

HOST: dict[Callable, str] = {
    np.busday_count: (
        "days, days[::-1]\ndays, np.datetime64('2011-08-01')\nx, x\n"
        "days, days, weekmask='1111100', holidays=['2011-07-04']\n'2011-07', days\n"
        "days, days, out=out((3,), 'i8')"
    ),
    np.busday_offset: (
        "days, 1, roll='forward'\ndays, [0, 1, 2], 'backward'\nx, 1\ndays, 2\ndays, 1, 'forward', '1111111'"
    ),
    np.is_busday: "days\n x\n days, holidays=['2011-07-01']\n days, '1111111'",
    np.datetime_as_string: "days\n x\n days, 'D'\n days, unit='h', timezone='UTC'\n days, 'fs', 'naive', 'safe'",
    np.strings.multiply: "words, wi\n raw, 2\n text, 3\n words, -1\n x, 2",
    np.strings.mod: "a(['%d', 'a%db']), a([1, 2])\n a(['%s']), 'q'\n words, 1",
    np.strings.capitalize: _STRING,
    np.strings.lower: _STRING,
    np.strings.upper: _STRING,
    np.strings.swapcase: _STRING,
    np.strings.title: _STRING,
    np.strings.center: "words, 8\n raw, 9, b'*'\n words, wi + 6, fillchar='-'\n text, 9\n x, 4",
    np.strings.ljust: "words, 8\n raw, 9, b'*'\n words, wi + 6, fillchar='-'\n text, 9\n x, 4",
    np.strings.rjust: "words, 8\n raw, 9, b'*'\n words, wi + 6, fillchar='-'\n text, 9\n x, 4",
    np.strings.zfill: "words, 8\n raw, 9\n text, 7\n x, 4",
    np.strings.expandtabs: "words\n raw, 3\n words, tabsize=wi\n x",
    np.strings.encode: "words\n words, 'ascii'\n words, encoding='utf-16', errors='strict'\n x",
    np.strings.decode: "raw\n raw, 'ascii'\n x",
    np.strings.partition: "words, ' '\n raw, b' '\n text, ' '\n x, 'a'",
    np.strings.rpartition: "words, ' '\n raw, b' '\n text, ' '\n x, 'a'",
    np.strings.replace: (
        "words, 'b', 'cc'\nraw, b'b', b''\nwords, 'b', 'xyz', count=wi\ntext, 'b', 'q'\nx, 'a', 'b'"
    ),
    np.strings.translate: "words, str.maketrans('ab', 'xy')\n words, 'x' * 256, 'c'\n x, 'x' * 256",
    np.char.join: "'-', words\n words, words\n b'-', raw\n x, x",
    np.char.split: "words\n words, ' '\n raw, b' ', 1\n x",
    np.char.rsplit: "words\n words, ' '\n raw, b' ', 1\n x",
    np.char.splitlines: "words\n raw, True\n x",
    **dict.fromkeys(
        (np.char.equal, np.char.not_equal, np.char.greater, np.char.greater_equal, np.char.less, np.char.less_equal),
        "words, words[::-1]\n raw, raw\n words, 'ab'\n x, x\n text, text",
    ),
    np.save: "BytesIO(), x\n BytesIO(), lx\n BytesIO(), x, allow_pickle=False\n BytesIO(), s",
    np.savez: "BytesIO(), x\n BytesIO(), x, b=y\n BytesIO(), x, allow_pickle=False",
    np.savez_compressed: "BytesIO(), x\n BytesIO(), q=v, r=s",
    np.savetxt: (
        "BytesIO(), x\nBytesIO(), v, fmt='%.3f'\nStringIO(), x, delimiter=',', header='a'\nBytesIO(), t\n"
        "BytesIO(), s"
    ),
    np.loadtxt: "StringIO('1 2\\n3 4'), like=x\n StringIO('1,2'), 'f4', delimiter=',', like=x\n StringIO('a'), like=x",
    np.genfromtxt: "StringIO('1 2\\n3 4'), like=x\n StringIO('1,'), delimiter=',', filling_values=7, like=x",
    np.fromfile: (
        "NumbersFile(), 'u1', like=x\nNumbersFile(), dtype='i2', count=2, offset=2, like=x\n"
        "'/nonexistent/file', like=x"
    ),
    npp.polyval2d: "x, y, k\n s, s, m\n hx, y, lm\n v, row, m",
    npp.polygrid2d: "v, w, k\n s, s, m\n hv, w, lm",
    rf.append_fields: (
        "rec, 'z', a([7, 8, 9])\nrec, ['z', 'y'], [a([1, 2, 3]), h([4, 5, 6])], usemask=False\nv, 'z', w"
    ),
    rf.apply_along_fields: "np.mean, same\n np.sum, rec\n np.sum, x",
    rf.assign_fields_by_name: "rec, rec2\n same, rec, zero_unassigned=False\n x, y",
    rf.drop_fields: "rec, 'a'\n rec, ['a', 'b']\n rec, 'q', usemask=False\n rec, 'a', asrecarray=True\n x, 'a'",
    rf.find_duplicates: "np.ma.asarray(h([(1, 2.), (1, 2.), (2, 3.)], [('a', 'i8'), ('b', 'f8')])), 'a'\n rec, 'a'\n x",
    rf.join_by: (
        "'a', rec, rec2, usemask=False\n'a', rec, rec2, 'outer', defaults={'c': 9}, usemask=False\n"
        "'a', rec, rec2, jointype='leftouter'\n'q', rec, rec2"
    ),
    rf.merge_arrays: "(rec, rec2)\n (rec, rec2), flatten=True, usemask=False\n (v, row)\n x",
    rf.rec_append_fields: "rec, 'z', a([7, 8, 9])\n rec, 'a', a([1, 2, 3])",
    rf.rec_drop_fields: "rec, 'a'\n rec, 'q'",
    rf.rec_join: "'a', rec, rec2\n 'a', rec, rec2, jointype='outer'",
    rf.recursive_fill_fields: "rec2, out((3,), rec.dtype)\n rec, rec\n x, y",
    rf.rename_fields: "rec, {'a': 'z'}\n rec, {'q': 'z'}\n x, {}",
    rf.repack_fields: "rec\n rec, align=True, recurse=True\n rec[['b']]\n x",
    rf.require_fields: "rec, [('b', 'f4'), ('z', 'u1')]\n rec, [('a', 'i8')]\n x, [('a', 'i8')]",
    rf.stack_arrays: "(rec, rec2), usemask=False\n (rec, rec), asrecarray=True\n rec\n (x, y)",
    rf.structured_to_unstructured: "same\n rec, dtype='f4'\n rec[['b']], copy=True\n x",
    rf.unstructured_to_structured: (
        "k[:, :2], np.dtype('f8,f8')\nk, names=['p', 'q', 'r'], align=True\nk, np.dtype('i4,i4')\n"
        "v, names=['a']"
    ),
}
if hasattr(npp, "polyvalnd"):  # NumPy 2.5
    HOST[npp.polyvalnd] = "(x, y), k\n (v,), row\n [s, s], m\n (hx, y), lm"

#: Uninitialised values: only dtype, shape and kind of the result are compared.
UNSET: dict[Callable, str] = {
    np.empty_like: (
        "x\nx, dtype='f4'\nx, shape=(2, 2)\nx.T, order='F'\nlx\ns\nx, dtype='S3'  # host: strings\n"
        "x, subok=False\nx, device='cpu'"
    ),
    np.empty: "(2, 3), like=x\n 4, 'f4', like=x\n (2,), 'O', like=x  # host: objects\n -1, like=x",
}


class NumbersFile(io.FileIO):
    """A file of eight bytes that is gone when closed."""

    def __init__(self) -> None:
        import tempfile

        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(bytes(range(8)))
        super().__init__(file.name, "rb")
        import os

        os.unlink(file.name)


NAMES = {"BytesIO": io.BytesIO, "StringIO": io.StringIO, "NumbersFile": NumbersFile}
