"""The protocols by which others recognise and read an array, one rule a test."""
from __future__ import annotations

import copy
import io
import operator
import os
import pickle
import subprocess
import sys
import warnings

import machine
import numpy as np
import pytest

import lazyarray
from lazyarray.testing import DEVICE_DTYPES, HOST_DTYPES, assert_copies, check

needs_buffer = pytest.mark.skipif(sys.version_info < (3, 12), reason="classes offer buffers from Python 3.12 on")
on_cuda = pytest.mark.skipif(not machine.ON_CUDA, reason="a simulated device has no pointers for CUDA libraries")
ALL_DTYPES = DEVICE_DTYPES + HOST_DTYPES


def plain_of(dtype, shape=(2, 3)):
    made = np.zeros(shape, dtype)
    if not made.dtype.names:
        made[...] = (np.arange(made.size).reshape(shape) % 2 if made.dtype == bool else
                     np.arange(made.size).reshape(shape)).astype(dtype)
    return made


@pytest.fixture
def plain():
    return np.arange(6.0).reshape(2, 3)


@pytest.fixture
def x(plain):
    return lazyarray.asarray(plain)


# What it is.

def test_it_is_an_ndarray_and_says_so(x):
    assert isinstance(x, np.ndarray)
    assert type(x) is lazyarray.LazyNdarray
    assert x.__class__ is np.ndarray
    assert lazyarray.is_lazy(x)
    assert not lazyarray.is_lazy(np.asarray(x))


def test_its_wrapped_object_is_the_device_array(x):
    assert isinstance(x.__wrapped__, lazyarray.device().array_type)


# __array_struct__ is a C struct that NumPy reads before it asks for anything else, and it cannot be live.
NOT_OFFERED = {"__array_struct__", "__getstate__", "_set_dtype", "_set_shape"}


@pytest.mark.parametrize("member", sorted(set(dir(np.ndarray)) - NOT_OFFERED))
def test_every_member_of_ndarray_is_there(x, plain, member):
    assert hasattr(x, member) == hasattr(plain, member)
    assert member in dir(x)


def test_looking_at_metadata_copies_nothing(x, plain):
    with assert_copies(uploads=0, materialisations=0, fallbacks=0):
        for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides"):
            assert getattr(x, name) == getattr(plain, name)
        assert len(x) == 2
        assert x.flags.c_contiguous and x.flags.owndata is not None
        assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6
        assert np.result_type(x, 1) == "f8" and np.can_cast(x.dtype, "c16")
        assert np.iscomplexobj(x) is False and np.isrealobj(x) is True
        assert x.T.shape == (3, 2) and x.__array_priority__ == 0.0


def test_it_has_the_namespace_of_its_kind(x):
    namespace = x.__array_namespace__()
    assert lazyarray.is_lazy(namespace.zeros((2, 2)))
    assert lazyarray.is_lazy(namespace.asarray([1.0]))
    assert x.device is not None
    assert lazyarray.is_lazy(namespace.add(x, x))


# __array__

@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_asarray_gives_the_values_in_any_dtype(dtype):
    plain = plain_of(dtype)
    found = np.asarray(lazyarray.asarray(plain))
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (plain.dtype, plain.shape)
    assert found.tolist() == plain.tolist()


def test_array_converts_and_copies_as_asked(x):
    assert x.__array__().dtype == "f8"
    assert x.__array__("f4").dtype == "f4"
    assert x.__array__(dtype=np.int8).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.asarray(x, "c16").dtype == "c16"
    assert np.shares_memory(x.__array__(), x.__array__())
    assert np.shares_memory(x.__array__(copy=False), x.__array__(copy=None))
    assert not np.shares_memory(x.__array__(copy=True), x.__array__())
    with pytest.raises(ValueError):
        x.__array__("f4", copy=False)
    with pytest.raises(ValueError):
        np.asarray(x, dtype="f4", copy=False)
    copied = np.array(x)
    copied[0, 0] = 99
    assert x[0, 0] == 0


def test_array_interface_names_live_memory(x, plain):
    interface = x.__array_interface__
    assert interface["shape"] == (2, 3)
    assert interface["typestr"] == "<f8"
    assert interface["version"] == 3
    address, read_only = interface["data"]
    assert isinstance(address, int) and read_only is False
    assert x.T.__array_interface__["strides"] == plain.T.strides


@pytest.mark.parametrize("function", [np.ascontiguousarray, np.asfortranarray, np.asanyarray, np.array, np.require,
                                      np.asarray_chkfinite, np.float64, np.matrix, np.ma.asarray, np.atleast_3d, list,
                                      bytes, sorted, str],
                         ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_conversions_give_the_values_that_an_ndarray_gives(function, plain):
    plain = plain[0]
    want, got = function(plain), function(lazyarray.asarray(plain))
    assert str(want) == str(got) or np.array_equal(want, got)


# The buffer.

@needs_buffer
@pytest.mark.parametrize("dtype", [d for d in DEVICE_DTYPES if d.kind != "O"] + [np.dtype("S3"), np.dtype("i4,f8")],
                         ids=str)
def test_the_buffer_is_numpys(dtype):
    plain = plain_of(dtype)
    for view in (lambda a: a, lambda a: a.T, lambda a: a[:, ::-2], lambda a: a[0, 0:0]):
        want, got = memoryview(view(plain)), memoryview(view(lazyarray.asarray(plain)))
        assert (got.format, got.shape, got.strides) == (want.format, want.shape, want.strides)
        assert got.readonly == want.readonly
        assert got.tobytes() == want.tobytes()


@needs_buffer
@pytest.mark.parametrize("dtype", ["M8[s]", "m8[ms]"])
def test_what_has_no_buffer_says_so_as_numpy_does(dtype):
    with pytest.raises(ValueError):
        memoryview(lazyarray.asarray(np.zeros(2, dtype)))


@needs_buffer
def test_a_read_only_array_has_a_read_only_buffer(x):
    x.flags.writeable = False
    assert memoryview(x).readonly
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(b"12345678").readinto(x)


@needs_buffer
def test_bytes_like_consumers_take_it(x, plain):
    import hashlib
    import struct
    import zlib

    assert hashlib.sha256(x).digest() == hashlib.sha256(plain).digest()
    assert zlib.crc32(x) == zlib.crc32(plain)
    assert struct.unpack_from("d", x, 8) == (1.0,)
    struct.pack_into("d", x, 8, 5.0)
    assert x[0, 1] == 5
    assert bytes(x) == np.asarray(x).tobytes()


def test_the_data_attribute_is_a_memoryview(x, plain):
    assert x.data.tobytes() == plain.data.tobytes()
    assert (x.data.format, x.data.shape, x.data.nbytes) == (plain.data.format, plain.data.shape, plain.data.nbytes)


PARTS = {"all": lambda x: x, "row": lambda x: x[1], "column": lambda x: x[:, 1], "turned": lambda x: x.T,
         "backwards": lambda x: x[:, ::-1], "every second": lambda x: x[::2]}


@pytest.mark.parametrize("make", [np.asarray, np.asanyarray])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_an_alias_that_is_made_read_only_can_be_made_writable_again(x, plain, part, make):
    first, alias = make(part(x)), make(part(x))
    alias.flags.writeable = False
    assert first.flags.writeable and make(part(x)).flags.writeable
    alias.flags.writeable = True
    alias.flags.writeable = True        # SciPy's sparse arrays set what is set
    alias[...] = 7
    part(plain)[...] = 7
    assert np.array_equal(x * 1, plain)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_that_of_a_read_only_array_can_not(x, part):
    seen = part(x)
    seen.flags.writeable = False
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.asarray(seen).flags.writeable = True


def test_copies_have_the_order_of_numpys():
    for seen in (lambda x: x.T, lambda x: x[:, ::-1], lambda x: np.swapaxes(x, 0, -1)[1:], lambda x: x[1:]):
        for order in "KCF":       # "A" means "K" to NumPy, of what is no ndarray
            found, wanted = (np.array(seen(make(np.arange(24.0).reshape(4, 6))), order=order)
                             for make in (lazyarray.asarray, np.asarray))
            assert found.strides == wanted.strides and np.array_equal(found, wanted), order


def test_columns_of_an_array_are_indexes_of_sparse_arrays():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_array(np.arange(9.0).reshape(3, 3))
    edges = lazyarray.asarray(np.array([[0, 1, 2], [1, 0, 2]]))
    assert list(matrix[edges[:, 0], edges[:, 1]]) == [1, 3]


def test_an_alias_of_a_part_outlives_its_array(x, plain):
    seen = x[:, 1]
    alias = np.asarray(seen)
    del x
    alias[0] = 5
    plain[0, 1] = 5
    assert np.array_equal(seen * 2, plain[:, 1] * 2)
    del seen
    assert np.array_equal(alias, plain[:, 1])


# DLPack, both ways.

def test_dlpack_for_host_consumers(x, plain):
    found = np.from_dlpack(x, device="cpu")
    assert found.tolist() == plain.tolist()
    found[0, 0] = 8
    assert x[0, 0] == 8
    copied = np.from_dlpack(x, device="cpu", copy=True)
    copied[0, 0] = 9
    assert x[0, 0] == 8


def test_numpys_from_dlpack_takes_it_without_being_told_of_a_device(x, plain):
    assert np.from_dlpack(x).tolist() == plain.tolist()


@on_cuda
def test_dlpack_for_device_consumers(x, plain):
    with assert_copies(uploads=0, materialisations=0):
        place = 2, lazyarray.device().device_of(x.__wrapped__)
        assert x.__dlpack_device__() == place
        found = lazyarray.device().from_foreign(machine.only(x, "__dlpack__", "__dlpack_device__"))
    assert found.get().tolist() == plain.tolist()
    with lazyarray.device(place[1]):    # CuPy's work on the memory of a GPU is in order with that of its own streams
        found[0, 0] = 8
    assert x[0, 0] == 8
    with assert_copies(uploads=0, materialisations=0):
        x.__dlpack__(dl_device=place)


def test_dlpack_asks_for_the_side_by_device(x):
    with assert_copies(uploads=0, materialisations=1):
        x.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(7, 0))


@pytest.mark.parametrize("dtype", ["O", "M8[s]", "S3", "i4,f8"])
def test_what_dlpack_cannot_hold_is_refused(dtype):
    with pytest.raises((BufferError, TypeError)):
        np.from_dlpack(lazyarray.asarray(np.zeros(3, dtype)), device="cpu")


def test_dlpack_of_a_read_only_array_is_read_only(x):
    x.flags.writeable = False
    assert not np.from_dlpack(x, device="cpu").flags.writeable


# The device's own protocols.

@on_cuda
def test_cuda_array_interface_version_3(x):
    with assert_copies(uploads=0, materialisations=0):
        interface = x.__cuda_array_interface__
    assert interface["version"] == 3
    assert interface["shape"] == (2, 3)
    assert interface["typestr"] == "<f8"
    assert interface["strides"] in (None, (24, 8))
    assert interface["stream"] is None or interface["stream"] != 0
    address, read_only = interface["data"]
    assert isinstance(address, int) and read_only is False
    assert x.T.__cuda_array_interface__["strides"] == (8, 24)
    assert x[1:].__cuda_array_interface__["data"][0] == address + 24


@on_cuda
def test_cuda_array_interface_of_a_read_only_array(x):
    x.flags.writeable = False
    assert x.__cuda_array_interface__["data"][1] is True


@pytest.mark.skipif(machine.ON_CUDA, reason="this is about the simulated device")
def test_a_simulated_array_is_not_taken_for_one_on_a_gpu(x):
    assert not hasattr(x, "__cuda_array_interface__")
    assert x.__dlpack_device__() == (1, 0)


def test_the_device_library_takes_it_without_a_copy(x, plain):
    with assert_copies(uploads=0, materialisations=0):
        found = x.__cupy_get_ndarray__()
    assert isinstance(found, lazyarray.device().array_type)
    assert found.get().tolist() == plain.tolist()


@pytest.mark.parametrize("dtype", ["M8[s]", "O", "g"])
def test_what_is_on_the_host_has_no_device_pointer(dtype):
    x = lazyarray.asarray(np.zeros(3, dtype))
    assert not hasattr(x, "__cuda_array_interface__")


# Pickles and copies.

def _pickled(protocol):
    return lambda a: pickle.loads(pickle.dumps(a, protocol))


WAYS_TO_COPY = {"copy": copy.copy, "deepcopy": copy.deepcopy}
WAYS_TO_COPY |= {f"pickle {protocol}": _pickled(protocol) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)}


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("way", WAYS_TO_COPY)
def test_copies_are_lazy_and_apart(dtype, way):
    plain = plain_of(dtype)
    x = lazyarray.asarray(plain)
    y = WAYS_TO_COPY[way](x)
    assert lazyarray.is_lazy(y)
    assert (y.dtype, y.shape) == (WAYS_TO_COPY[way](plain).dtype, plain.shape)
    assert y.tolist() == plain.tolist()
    x[0] = x[1]
    assert y.tolist() == plain.tolist()


def test_copies_stay_on_the_device(x):
    with assert_copies(uploads=0, materialisations=0):
        copy.copy(x), copy.deepcopy(x), x.copy(), np.copy(x)


def test_deepcopy_keeps_what_is_one_object_one(x):
    one, other = copy.deepcopy([x, x])
    assert one is other


def test_a_pickle_opens_in_another_process(x):
    code = ("import pickle, sys, lazyarray; x = pickle.load(sys.stdin.buffer); "
            "assert lazyarray.is_lazy(x); print(x.tolist())")
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(x), capture_output=True, timeout=120,
                          check=False,
                          env=dict(os.environ, PYTHONPATH=":".join(filter(None, sys.path))))
    assert done.stdout.decode().strip() == "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]", done.stderr.decode()


def test_scalars_pickle_as_scalars(x):
    found = pickle.loads(pickle.dumps(x.max()))
    assert found == 5 and isinstance(found, np.float64)
    assert copy.deepcopy(x.max()) == 5


@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if not d.hasobject], ids=str)
def test_files_round_trip(dtype, tmp_path):
    plain = plain_of(dtype)
    x = lazyarray.asarray(plain)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", a=x, b=x[:1])
    x.tofile(tmp_path / "raw")
    assert np.load(tmp_path / "x.npy").tolist() == plain.tolist()
    with np.load(tmp_path / "x.npz") as archive:
        assert archive["a"].tolist() == plain.tolist()
        assert archive["b"].dtype == dtype
    assert (tmp_path / "raw").read_bytes() == plain.tobytes() == x.tobytes()


@pytest.mark.parametrize("write", [
    lambda file, x: np.save(file, x), lambda file, x: np.savez(file, x), lambda file, x: np.savez_compressed(file, a=x),
    lambda file, x: np.savetxt(file, x), lambda file, x: x.tofile(file)], ids="save savez zip txt tofile".split())
def test_what_is_written_to_a_file_is_copied_once_and_is_no_fallback(write, tmp_path):
    x = lazyarray.asarray(np.ones((3000, 4))) * 2
    with warnings.catch_warnings(), lazyarray.trace() as t:
        warnings.simplefilter("error")
        write(tmp_path / "file", x)
        np.asarray(x)
    assert (len(t.uploads), len(t.materialisations), t.fallbacks) == (0, 1, [])
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError):
        write(tmp_path / "file", x + 1)


# Scalars.

@pytest.mark.parametrize("dtype", DEVICE_DTYPES, ids=str)
def test_a_scalar_is_an_instance_of_numpys_type(dtype):
    s, plain = lazyarray.asarray(plain_of(dtype))[0, 1], plain_of(dtype)[0, 1]
    assert isinstance(s, type(plain)) and isinstance(s, np.generic)
    assert type(s) is lazyarray.LazyScalar
    assert isinstance(s, float) == isinstance(plain, float)
    assert (s.dtype, s.shape, s.ndim) == (plain.dtype, (), 0)
    assert s == plain and not s != plain
    assert hash(s) == hash(plain)
    assert repr(s) == repr(plain) and str(s) == str(plain) and f"{s}" == f"{plain}"
    assert bool(s) == bool(plain)
    assert s.item() == plain.item() and type(s.item()) is type(plain.item())
    assert {s: 1}[plain] == 1


def test_a_scalar_stays_on_the_device_until_its_value_is_read(x):
    with assert_copies(uploads=0, materialisations=0):
        mean = x.mean()
        centred = x - mean
        variance = (centred * centred).sum() / x.size
        deviation = np.sqrt(variance)
    with assert_copies(uploads=0, materialisations=1, nbytes=8):
        assert float(deviation) == pytest.approx(1.707825127659933)
        float(deviation)


@pytest.mark.parametrize("read", [float, int, complex, bool, str, repr, hash, "{:.2f}".format, lambda s: round(s, 1),
                                  lambda s: [1, 2, 3, 4, 5, 6][int(s)], lambda s: s.is_integer(),
                                  lambda s: 3 if s else 4,
                                  lambda s: divmod(s, 2), lambda s: -s, abs, lambda s: s ** 2, lambda s: 2 ** s,
                                  lambda s: s // 2, lambda s: s < 3, lambda s: max(s, 2), lambda s: sorted([s, 1, 7]),
                                  lambda s: s.as_integer_ratio(), lambda s: s.conjugate(), lambda s: s.tolist(),
                                  lambda s: np.isfinite(s), lambda s: s.astype("i4"), lambda s: f"{s:g} {s}"],
                         ids=range(27))
def test_a_scalar_behaves_as_numpys(read):
    want, got = read(np.float64(5.0)), read(lazyarray.asarray([5.0])[0])
    assert want == got
    assert repr(want) == repr(got)
    assert isinstance(got, type(want))


@pytest.mark.parametrize("read", [operator.index, lambda s: list("abc")[s], lambda s: range(s), lambda s: s << 2,
                                  lambda s: ~s,
                                  lambda s: s.bit_count(), lambda s: np.zeros(s), lambda s: "ab" * s, lambda s: [0] * s,
                                  lambda s: slice(s).indices(10), lambda s: bytes(s), lambda s: np.arange(5)[s],
                                  lambda s: np.eye(3)[s, :s], lambda s: np.ones((s, 2)).shape, hex], ids=range(15))
def test_an_integer_scalar_is_an_index(read):
    assert repr(read(np.int64(2))) == repr(read(lazyarray.asarray([2])[0]))


@pytest.mark.parametrize("write", [lambda s: operator.setitem(s, (), 1), lambda s: setattr(s, "real", 1),
                                   lambda s: s.fill(1),
                                   lambda s: np.add(s, 1, out=s), lambda s: s.sort(), lambda s: s.put(0, 1),
                                   lambda s: np.copyto(s, 1), lambda s: s.setflags(write=True),
                                   lambda s: setattr(s, "new", 1)],
                         ids=range(9))
def test_a_scalar_is_immutable(x, write):
    outcomes = []
    for s in (np.float64(1.0), x[0, 1]):
        try:
            write(s)
            outcomes.append(None)
        except Exception as error:  # noqa: BLE001  what NumPy raises is what is wanted
            outcomes.append(type(error))
        assert s == 1
    assert outcomes[0] == outcomes[1]


# NumPy 2's promotion.

@pytest.mark.parametrize("dtype", DEVICE_DTYPES, ids=str)
@pytest.mark.parametrize("other", [1, True, 2.5, 1j, np.int8(1), np.uint64(1), np.float32(1.5), np.float64(1.5),
                                   [1, 2, 3],
                                   np.array([1, 2, 3], "u1"), np.array(2.0), (1.0, 2.0, 3.0)], ids=repr)
def test_promotion_is_numpys(dtype, other):
    plain = plain_of(dtype)
    x = lazyarray.asarray(plain)
    for op in (operator.add, operator.mul, operator.lt, np.maximum, lambda a, b: np.add(b, a)):
        assert op(x, other).dtype == op(plain, other).dtype
        if not isinstance(other, (list, tuple)):  # a sequence times a scalar repeats it
            assert op(x[0, 1], other).dtype == op(plain[0, 1], other).dtype
    assert lazyarray.is_lazy(x + other) and lazyarray.is_lazy(other + x if not isinstance(other, (list, tuple)) else x)


def test_python_integers_out_of_bounds_are_refused():
    check(lambda a: a + 300, np.zeros(2, "u1"))
    check(lambda a: a.fill(-1), np.zeros(2, "u1"))
    check(lambda a: a == 300, np.zeros(2, "u1"))
    check(lambda a: operator.iadd(a, 1.5), np.zeros(2, "i4"))


# Foreign types that know better.

class Unit:
    """A duck array: takes part by ``__array_ufunc__``, whichever side it stands on."""

    def __init__(self, value):
        self.value = value

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        values = [i.value if isinstance(i, Unit) else i for i in inputs]
        return Unit(getattr(ufunc, method)(*values, **kwargs))

    def __array_function__(self, func, types, args, kwargs):
        return "duck", func.__name__

    def __add__(self, other):
        return np.add(self, other)

    def __radd__(self, other):
        return np.add(other, self)


class OptsOut:
    __array_ufunc__ = None

    def __radd__(self, other):
        return "radd"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __eq__(self, other):
        return "eq"

    def __gt__(self, other):
        return "gt"


class Priority:
    """The old way to be asked first."""

    __array_priority__ = 10_000

    def __radd__(self, other):
        return "radd"

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0, 3.0], dtype)


class NoArray:
    def __radd__(self, other):
        return "radd"

    def __rsub__(self, other):
        return NotImplemented


def test_a_duck_array_gets_its_turn(x):
    unit = Unit(np.ones(3))
    for result in (x + unit, unit + x, np.add(x, unit), np.multiply(unit, x)):
        assert type(result) is Unit
        assert result.value.shape == (2, 3)
        assert lazyarray.is_lazy(result.value)
    assert type(np.add.reduce(Unit(x))) is Unit
    assert np.concatenate([x, unit]) == ("duck", "concatenate")
    assert type(x[0, 1] + unit) is Unit


def test_a_type_that_opts_out_gets_its_operators(x):
    other = OptsOut()
    assert x + other == "radd"
    assert x @ other == "rmatmul"
    assert (x == other) == "eq"
    assert (x < other) == "gt"
    assert x[0, 1] + other == "radd"
    with pytest.raises(TypeError):
        np.add(x, other)
    with pytest.raises(TypeError):
        x - other


def test_array_priority_is_heeded(x):
    assert x + Priority() == "radd"
    assert x[0] + Priority() == "radd"


def test_an_object_of_no_kind_is_treated_as_numpy_treats_it(plain, x):
    for op in (lambda a: a + NoArray(), lambda a: a - NoArray(), lambda a: a * NoArray(), lambda a: a == NoArray(),
               lambda a: a @ NoArray(), lambda a: a + None, lambda a: a + "text", lambda a: a == "text",
               lambda a: a < None,
               lambda a: a == None, lambda a: operator.iadd(a, "text")):  # noqa: E711
        try:
            want = op(plain.copy())
        except Exception as error:  # noqa: BLE001  what NumPy raises is what is wanted
            with pytest.raises(type(error)):
                op(x.copy())
        else:
            assert np.asarray(op(x)).tolist() == want.tolist()


def test_masked_arrays(plain, x):
    mask = np.ma.masked_greater(plain, 3)
    for op in (lambda a: a + mask, lambda a: mask + a, lambda a: np.multiply(mask, a), lambda a: mask * a.sum(),
               lambda a: mask - a[0], lambda a: np.ma.concatenate([mask, a]), lambda a: np.ma.array(a, mask=a > 2),
               lambda a: mask / a[0, 1], lambda a: mask == a, lambda a: np.ma.masked_where(a > 2, a)):
        want, got = op(plain), op(x)
        assert type(got) is type(want)
        assert got.tolist() == want.tolist()
        assert got.dtype == want.dtype


class Sub(np.ndarray):
    pass


@pytest.mark.parametrize("make", [np.matrix, lambda a: a.view(Sub)], ids=["matrix", "subclass"])
def test_subclasses_of_ndarray_keep_their_type(plain, x, make):
    other = make(plain)
    for op in (operator.add, np.add, lambda a, b: b + a):
        assert type(op(x, other)) is type(op(plain, other)) is type(other)
    assert (other @ x.T).tolist() == (other @ plain.T).tolist()


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "coo_array"])
@pytest.mark.parametrize("op", [
    lambda a, s: a + s, lambda a, s: s + a, lambda a, s: a - s, lambda a, s: s @ a.T, lambda a, s: a.T @ s,
    lambda a, s: s.dot(a[0]), lambda a, s: s.multiply(a), lambda a, s: type(s)(a), lambda a, s: s * a[0, 1],
    lambda a, s: a[0, 1] * s,
], ids=range(10))
def test_sparse_matrices(plain, x, kind, op):
    sparse = pytest.importorskip("scipy.sparse")
    s = getattr(sparse, kind)(np.array([[0, 1.0, 0], [2, 0, 0]]))
    want, got = op(plain, s), op(x, s)
    assert sparse.issparse(want) == sparse.issparse(got)
    want, got = (m.toarray() if sparse.issparse(m) else np.asarray(m) for m in (want, got))
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("call", [
    lambda a, scipy: scipy.ndimage.gaussian_filter(a, 1), lambda a, scipy: scipy.linalg.svdvals(a),
    lambda a, scipy: scipy.spatial.cKDTree(a).query([0, 1, 2]), lambda a, scipy: scipy.optimize.nnls(a, a[:, 0])[0],
    lambda a, scipy: scipy.signal.convolve2d(a, a), lambda a, scipy: scipy.stats.zscore(a, axis=None),
], ids=["gaussian_filter", "svdvals", "cKDTree", "nnls", "convolve2d", "zscore"])
def test_consumers_that_know_ndarrays_only(call):
    scipy = pytest.importorskip("scipy")
    check.using(rtol=1e-6)(lambda a: call(a, scipy), np.arange(6.0).reshape(2, 3))


def test_operands_of_the_device_library(x, plain):
    other = lazyarray.device().xp.ones((2, 3))
    with assert_copies(uploads=0, materialisations=0):
        results = [np.add(x, other), np.concatenate([x, lazyarray.asarray(other)]), x + other]
    assert results[0].tolist() == results[2].tolist() == (plain + 1).tolist()


def test_like_makes_lazy_arrays(x):
    for made in (np.array([1, 2], like=x), np.zeros(3, like=x), np.arange(3, like=x), np.asarray([1.0], like=x),
                 np.full((2, 2), 7, like=x), np.eye(2, like=x), np.frombuffer(b"12345678", like=x)):
        assert lazyarray.is_lazy(made)
    assert np.arange(3, like=x).tolist() == [0, 1, 2]


# The guards.

def test_no_transfers_names_the_array_and_the_line(x):
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError) as caught:
        np.asarray(x)
    message = str(caught.value)
    assert "48" in message and "(2, 3)" in message and "float64" in message
    assert "test_protocols.py" in message
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("hidden", [float, lambda a: a[0].tolist(), lambda a: bool(a.any()), lambda a: list(a[0]),
                                    np.asarray,
                                    lambda a: [float(v) for v in a.flat], lambda a: f"{a.sum()}", lambda a: a.data,
                                    lambda a: np.from_dlpack(a, device="cpu"), lambda a: a.tobytes(),
                                    lambda a: hash(a.sum()),
                                    lambda a: a.ctypes.data, lambda a: pickle.dumps(a), lambda a: 3 in a,
                                    lambda a: lazyarray.asnumpy(a), lambda a: math_of(a)], ids=range(16))
def test_no_transfers_catches_what_is_hidden(plain, hidden):
    x = lazyarray.asarray(plain[:1, :1] if hidden is float else plain)
    if hidden is float:
        x = x.reshape(())
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError):
        hidden(x)
    hidden(x)


def math_of(a):
    import math

    return math.sqrt(a.sum())


def test_no_transfers_lets_device_work_pass(x):
    with lazyarray.no_transfers():
        y = (x * 2).sum(axis=0)
        y += 1
        y[0], y[::-1], y.reshape(3, 1), y.shape, len(y), y.mean()
    assert y.tolist() == [7, 11, 15]


def test_no_transfers_by_direction(x, plain):
    with lazyarray.no_transfers(uploads="error"):
        np.asarray(x)
        with pytest.raises(lazyarray.TransferError):
            x + plain
    with lazyarray.no_transfers(materialisations="error"):
        x + plain
        with pytest.raises(lazyarray.TransferError):
            np.asarray(x + 1)
    with lazyarray.no_transfers(), lazyarray.no_transfers(uploads="allow"):
        x + plain
        with pytest.raises(lazyarray.TransferError):
            np.asarray(x + 1)


# Python's protocols.

def test_iteration_gives_rows_as_views_and_elements_as_scalars(x, plain):
    rows = list(x)
    assert all(lazyarray.is_lazy(row) for row in rows)
    rows[1][0] = 30
    assert x[1, 0] == 30
    assert [type(v) for v in plain[0]] == [v.dtype.type for v in x[0]]
    assert all(isinstance(v, np.float64) for v in x[0])
    with pytest.raises(TypeError):
        iter(x[0, 0, ...])


def test_a_loop_over_elements_fetches_in_bulk():
    x = lazyarray.asarray(np.arange(1000.0))
    with lazyarray.trace() as trace:
        assert sum(float(v) for v in x) == 499_500
        assert sum(float(x[i]) for i in range(1000)) == 499_500
    assert len(trace.events) < 30


def test_pattern_matching(x):
    match x[0]:
        case [first, *rest]:
            assert first == 0
            assert [float(v) for v in rest] == [1, 2]
        case _:
            found = "no sequence, as an ndarray is none"
            assert not isinstance(np.zeros(2), __import__("collections.abc").abc.Sequence), found
    match x:
        case np.ndarray(shape=(rows, columns)):
            assert (rows, columns) == (2, 3)
        case _:
            raise AssertionError("not seen as an ndarray")
    match x.max():
        case float(value):
            assert value == 5
        case _:
            raise AssertionError("not seen as a float")


def test_arrays_are_unhashable(x):
    with pytest.raises(TypeError):
        hash(x)
    assert type(x).__hash__ is None


@pytest.mark.parametrize("use", [bool, float, int, complex, operator.index, len, iter, list, reversed, lambda a: 3 in a,
                                 lambda a: a.item(), lambda a: a in [a], lambda a: [*a], lambda a: a[5, 5],
                                 lambda a: a["f"],
                                 lambda a: a[1.0], lambda a: a.nothing, lambda a: a(), lambda a: a.shape.__len__(),
                                 lambda a: operator.delitem(a, 0), lambda a: a.__setattr__("nothing", 1),
                                 lambda a: next(a),
                                 lambda a: a.__bool__(), lambda a: a[None][0] is a, lambda a: f"{a:.2f}", lambda a: -a,
                                 lambda a: +a, abs, lambda a: ~a, lambda a: a.real is a, lambda a: a @ 2, divmod,
                                 round],
                         ids=range(33))
@pytest.mark.parametrize("make", [lambda: np.arange(6.0).reshape(2, 3), lambda: np.array(2.0), lambda: np.array([3.0]),
                                  lambda: np.zeros((0, 2)), lambda: np.array([[True]]), lambda: np.arange(3)],
                         ids=["2-D", "0-d", "one", "empty", "bool", "int"])
@pytest.mark.filterwarnings("ignore")
def test_pythons_operations_do_what_they_do_to_an_ndarray(use, make):
    def consumed(a):
        found = use(a)
        return list(found) if hasattr(found, "__next__") else found

    check(consumed, make())


@pytest.mark.parametrize("change", [
    lambda a: setattr(a, "shape", (3, 2)), lambda a: setattr(a, "shape", (7,)), lambda a: setattr(a, "dtype", "i8"),
    lambda a: setattr(a, "dtype", "i2,i2,f4"), lambda a: setattr(a, "flat", 7), lambda a: setattr(a, "real", 7),
    lambda a: setattr(a, "imag", 7), lambda a: setattr(a, "T", 7), lambda a: setattr(a, "ndim", 7),
    lambda a: a.resize(3, 2),
    lambda a: setattr(a, "strides", (8, 16)), lambda a: a.setflags(write=False),
    lambda a: setattr(a.flags, "writeable", False),
    lambda a: a.sort(axis=0), lambda a: a.partition(1), lambda a: a.fill(3), lambda a: a.put([0, 1], 5),
    lambda a: a.byteswap(inplace=True), lambda a: a.itemset(0, 1), lambda a: operator.imatmul(a, np.eye(3)),
    lambda a: operator.ipow(a, 2), lambda a: operator.ifloordiv(a, 2), lambda a: operator.imod(a, 2),
    lambda a: operator.itruediv(a, 4), lambda a: operator.ior(a, 1), lambda a: setattr(a, "base", None),
    lambda a: operator.setitem(a, Ellipsis, a.T), lambda a: operator.setitem(a, (0, 0), [1, 2]),
    lambda a: operator.setitem(a, 0, None),
], ids=range(29))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_changes_in_place_are_numpys(change):
    def changed(a):
        change(a)
        return a.shape, a.strides, str(a.dtype), a.flags.writeable, a.flags.c_contiguous

    check(changed, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (1500,), (40, 50), (2, 3, 4), (2000, 2000)], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "i4", "?", "c8", "M8[s]", "O", "S3"])
def test_text_is_numpys_and_reads_the_corners_only(shape, dtype):
    plain = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    x = lazyarray.asarray(plain)
    with lazyarray.trace() as trace:
        assert repr(x) == repr(plain)
        assert str(x) == str(plain)
        assert f"{x}" == f"{plain}"
    assert sum(event.nbytes for event in trace.events) <= 64 * 1024


def test_print_options_are_heeded(plain, x):
    with np.printoptions(precision=1, threshold=3, edgeitems=1, linewidth=20):
        assert repr(x * 1.23456) == repr(plain * 1.23456)


def test_shuffles_are_numpys_or_refused(plain, x):
    wide = np.arange(40.0).reshape(10, 4)
    for seed in range(3):
        for one, other in ((plain.reshape(-1).copy(), None), (wide.copy(), None)):
            other = lazyarray.asarray(one)
            np.random.default_rng(seed).shuffle(one)
            try:
                np.random.default_rng(seed).shuffle(other)
            except TypeError:
                continue
            assert other.tolist() == one.tolist()


def test_random_results_into_it_are_right_or_refused():
    x = lazyarray.asarray(np.zeros(5))
    want = np.random.default_rng(0).random(5)
    try:
        np.random.default_rng(0).random(out=x)
    except (TypeError, ValueError):
        assert x.tolist() == [0] * 5
    else:
        assert x.tolist() == want.tolist()


# -- bare addresses -------------------------------------------------------------------------------

KINDS_OF_THE_HOST = ["m8[s]", "M8[s]", "U3", "i4,f8", "O", ">f8"]


def other_memory(x):
    x.__setstate__(np.zeros(3, x.dtype).__reduce__()[2])


@pytest.mark.parametrize("give", [np.asarray, lambda x: np.asarray(Exporter(x))], ids=["NumPy", "an address"])
@pytest.mark.parametrize("dtype", KINDS_OF_THE_HOST)
@pytest.mark.parametrize("change", [other_memory, lambda x: x.resize(400_000, refcheck=False)], ids=["other", "resize"])
def test_memory_lives_as_long_as_an_array_of_it(change, dtype, give):
    """Of some dtypes NumPy takes the address, and holds the lazy array for whose memory that is."""
    x = lazyarray.asarray(np.ones(300_000).astype("i8").astype(dtype))      # large: what was freed is no longer there
    alias = give(x)
    before = alias[:3].copy()
    change(x)
    alias[:] = alias[::-1].copy()
    assert alias[:3].tobytes() == before.tobytes() and len(x) in (3, 400_000)


class Exporter:
    """Has nothing but the address of an array."""

    def __init__(self, x):
        self.x, self.__array_interface__ = x, x.__array_interface__


@pytest.mark.parametrize("dtype", [*KINDS_OF_THE_HOST, "f8"])
def test_what_somebody_has_an_alias_of_is_not_resized(dtype):
    x = lazyarray.asarray(np.zeros(4, dtype))
    x.resize(8)
    assert x.shape == (8,)
    alias = np.asarray(x)
    with pytest.raises(ValueError, match="cannot resize"):
        x.resize(16)
    assert alias.shape == x.shape


def test_addresses_that_were_given_are_forgotten():
    from lazyarray.array import protocols

    before, x = len(protocols._given), lazyarray.asarray(np.zeros(4, "m8[s]"))
    for _ in range(5):
        x.__array_interface__
    assert len(protocols._given) == before + 1
    del x
    assert len(protocols._given) == before
