"""The launch of kernels in C: what reaches ``cuLaunchKernel``, which a function in Python stands for here."""
from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given as anything
from hypothesis import strategies as st

from lazyarray import _native
from lazyarray.devices.cuda.kernels.elementwise_source import lengths_in, strides_in
from lazyarray.devices.cuda.kernels.launch_plan import VECTOR, plan, vector_length, walk_bytes
from lazyarray.devices.program import Operand, Program, Step

if _native.launch is None:
    pytest.skip("the part in C was not compiled", allow_module_level=True)

SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p,
                             ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)


class Array:
    """As much of a CuPy array as a launch asks for."""

    address = 0x7000

    def __init__(self, shape, dtype, memptr=None, strides=None, order="C"):
        self.given = shape, dtype, memptr, strides, order
        self.data = SimpleNamespace(ptr=Array.address)


def at(address):
    array = Array((), None)
    array.data = SimpleNamespace(ptr=address)
    return array


class Driver:
    """Notes each launch, and gives `error`."""

    def __init__(self, formats):
        self.calls, self.error, self.formats = [], 0, formats
        self.function = SIGNATURE(self.launched)

    def launched(self, function, bx, by, bz, tx, ty, tz, shared, stream, parameters, extra):
        values = [ctypes.cast(parameters[i], ctypes.POINTER(kind))[0] for i, kind in enumerate(self.formats)]
        values = [type(v).from_buffer_copy(v) if isinstance(v, ctypes.Array) else v for v in values]
        self.calls.append((function, (bx, by, bz), (tx, ty, tz), shared, stream, values, extra))
        return self.error

    @property
    def address(self):
        return ctypes.cast(self.function, ctypes.c_void_p).value


def launch_of(driver, sizes, dtypes=("f4",), elements=1024, threads=256, told=True, stream=None, owner=None,
              function=99, **more):
    stream = stream or (lambda: SimpleNamespace(ptr=5))
    given = function, driver.address, owner, Array, stream, sizes, dtypes, elements, threads, told
    return _native.launch.Launch(*given, **more)


POINTER, LONG, INT = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int


def test_what_a_kernel_is_given():
    driver = Driver([POINTER, ctypes.c_float, POINTER, LONG, INT])
    outputs = launch_of(driver, (0, 4))([at(0x100), np.float32(2.5)], (5, 1000), True)
    assert [o.given for o in outputs] == [((5, 1000), "f4", None, None, "F")]
    assert driver.calls == [(99, (5, 1, 1), (256, 1, 1), 0, 5, [0x100, 2.5, 0x7000, 5000, 1], None)]


@pytest.mark.parametrize("number, kind", [
    (np.int8(-3), ctypes.c_int8), (np.uint64(2**64 - 1), ctypes.c_uint64), (np.float64(0.1), ctypes.c_double),
    (np.bool_(True), ctypes.c_bool), (np.int64(-1), ctypes.c_int64),
])
def test_numbers(number, kind):
    driver = Driver([kind, POINTER, LONG])
    assert launch_of(driver, (number.itemsize,), told=False)([number], (3,), False)
    assert driver.calls[0][5][0] == number


def test_complex_numbers():
    driver = Driver([ctypes.c_double * 2, POINTER, LONG])
    assert launch_of(driver, (16,), told=False)([np.complex128(1 + 2j)], (3,), False)
    assert list(driver.calls[0][5][0]) == [1, 2]


def test_several_outputs():
    driver = Driver([POINTER, POINTER, POINTER, LONG, INT])
    outputs = launch_of(driver, (0,), ("f4", "?"))([at(16)], (7,), False)
    assert [o.given[1] for o in outputs] == ["f4", "?"]


WALK = 0x123456789
BYTES = WALK.to_bytes(8, sys.byteorder)


class TestStrides:
    """Inputs that are walked: a launch for each kind of strides and addresses, and where tiles may be, of shape."""

    SHAPE = 30, 40

    def strided(self, address=0x100, shape=SHAPE, strides=(4, 120)):
        array = at(address)
        array.shape, array.strides = shape, strides
        return array

    def planned(self, walk=BYTES, told=False, **settings):
        driver = Driver([POINTER, POINTER, LONG, LONG if walk else INT])
        launch = launch_of(driver, (0,), told=False, strided=((0, 4),))
        first = self.strided(**settings)
        more = {"walk": walk} if walk else {}
        launch.plans[launch.key([first], self.SHAPE, False)] = launch_of(
            driver, (0,), told=told, function=77, blocks=6, threads=32, **more)
        return driver, launch

    def test_what_the_kernel_is_given(self):
        driver, launch = self.planned()
        outputs = launch([self.strided()], self.SHAPE, False)
        assert [o.given for o in outputs] == [(self.SHAPE, "f4", None, None, "C")]
        assert driver.calls == [(77, (6, 1, 1), (32, 1, 1), 0, 5, [0x100, 0x7000, 1200, WALK], None)]

    def test_packs_that_the_plan_chose_are_said_to_be_there(self):
        driver, launch = self.planned(walk=None, told=True)
        assert launch([self.strided()], self.SHAPE, False) and driver.calls[0][5] == [0x100, 0x7000, 1200, 1]

    def test_another_address_as_far_from_a_pack(self):
        driver, launch = self.planned()
        assert launch([self.strided(0x340)], self.SHAPE, False) and driver.calls[0][5][0] == 0x340

    @pytest.mark.parametrize("array, shape, fortran", [
        ({"address": 0x104}, SHAPE, False), ({"strides": (160, 4)}, SHAPE, False), ({"shape": (1, 40)}, SHAPE, False),
        ({}, (12,), False), ({}, SHAPE, True),
    ])
    def test_without_a_plan_it_is_left_to_the_caller(self, array, shape, fortran):
        driver, launch = self.planned()
        assert launch([self.strided(**array)], shape, fortran) is None and not driver.calls

    def test_what_is_no_plan_is_left_to_the_caller(self):
        driver, launch = self.planned()
        for wrong in (None, launch_of(driver, (0,)), launch_of(driver, (), blocks=6)):
            launch.plans[launch.key([self.strided()], self.SHAPE, False)] = wrong
            assert launch([self.strided()], self.SHAPE, False) is None and not driver.calls

    def test_other_lengths_are_walked_by_the_same_plan(self):
        driver = Driver([POINTER, POINTER, LONG, LONG * 4])
        launch = launch_of(driver, (0,), told=False, strided=((0, 4),))

        def rows(n, columns):
            return self.strided(0x104, (n, columns), (8 * columns, 4))

        launch.plans[launch.key([rows(3, 5)], (3, 5), False)] = launch_of(
            driver, (0,), told=False, function=77, elements=10, threads=32, walks=True)
        for n, columns in ((3, 5), (1000, 7), (2, 33)):
            driver.calls.clear()
            assert launch([rows(n, columns)], (n, columns), False)
            function, blocks, _, _, _, values, _ = driver.calls[0]
            expected = walk_bytes([n, columns], [[8 * columns, 4]], False)
            assert function == 77 and blocks == (-(-n * columns // 10), 1, 1)
            assert bytes(values[3])[:len(expected)] == expected
        assert launch([self.strided(0x104, (2, 33), (264, 8))], (2, 33), False) is None    # not neighbours

    def test_errors(self):
        driver = Driver([])
        with pytest.raises(AttributeError):
            launch_of(driver, (0,), strided=((0, 4),))([at(16)], (3,), False)
        for wrong in ((1, 4), (0, 0)):
            with pytest.raises(ValueError, match="no such input"):
                launch_of(driver, (0,), strided=(wrong,))
        with pytest.raises(TypeError):
            launch_of(driver, (0,), strided=(0,))
        with pytest.raises(ValueError, match="blocks"):
            launch_of(driver, (0,), blocks=-1)
        with pytest.raises(TypeError):
            launch_of(driver, (0,), walk=3)
        launch = launch_of(driver, (0, 4), strided=((0, 4),))
        with pytest.raises(TypeError, match="another kind"):
            launch.key([self.strided(), "text"], (3,), False)
        with pytest.raises(TypeError, match="2 arguments"):
            launch.key([self.strided()], (3,), False)

    def test_a_cycle_through_the_plans_is_found(self):
        class Owner:
            pass

        owner = Owner()
        launch = launch_of(Driver([]), (), owner=owner)
        launch.plans["itself"] = launch
        gone = weakref.ref(owner)
        del owner, launch
        gc.collect()
        assert gone() is None


class TestLeftToTheCaller:
    def launched(self, arguments, sizes, error=0, shape=(3,), **settings):
        driver = Driver([POINTER] * len(sizes) + [POINTER, LONG])
        driver.error = error
        return launch_of(driver, sizes, **settings)(arguments, shape, False), len(driver.calls)

    def test_an_address_that_packs_cannot_be_loaded_from(self):
        assert self.launched([at(8)], (0,)) == (None, 0)
        assert self.launched([at(8)], (0,), told=False)[1] == 1

    @pytest.mark.parametrize("number", [2.5, np.float64(2.5), None, "text"])
    def test_another_number_than_the_kernel_s(self, number):
        assert self.launched([number], (4,)) == (None, 0)

    def test_an_error_of_the_driver_s(self):
        assert self.launched([at(16)], (0,), error=201) == (None, 1)

    def test_no_elements(self):
        assert self.launched([at(16)], (0,), shape=(0, 4)) == (None, 0)

    def test_more_blocks_than_a_grid_has(self):
        assert self.launched([at(16)], (0,), shape=(2**42,)) == (None, 0)


class TestErrors:
    def test_of_the_arrays_that_are_made(self):
        class Full(Array):
            def __init__(self, *args):
                raise MemoryError

        driver = Driver([])
        launch = _native.launch.Launch(99, driver.address, None, Full, None, (), ("f4",), 1, 1, False)
        with pytest.raises(MemoryError):
            launch([], (3,), False)
        assert not driver.calls

    def test_of_the_stream(self):
        def gone():
            raise RuntimeError("no stream")

        with pytest.raises(RuntimeError, match="no stream"):
            launch_of(Driver([]), (), stream=gone)([], (3,), False)

    def test_of_arguments_that_are_no_arrays(self):
        with pytest.raises(AttributeError):
            launch_of(Driver([]), (0,))([3], (3,), False)

    @pytest.mark.parametrize("arguments, shape", [([], (3,)), ([at(16)] * 2, (3,)), ([at(16)], (-1,))])
    def test_of_calls(self, arguments, shape):
        with pytest.raises((TypeError, ValueError)):
            launch_of(Driver([]), (0,))(arguments, shape, False)

    @pytest.mark.parametrize("settings", [
        {"sizes": (17,)}, {"sizes": (-1,)}, {"sizes": (0,) * 62}, {"elements": 0}, {"threads": 0},
    ])
    def test_of_what_it_is_made_from(self, settings):
        with pytest.raises(ValueError):
            launch_of(Driver([]), **{"sizes": (0,), **settings})


def operand(draw, shape, itemsize):
    """An array that broadcasts to a shape, as a launch sees it, from an address."""
    own = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in shape[draw(st.integers(0, len(shape))):])
    axes = draw(st.permutations(range(len(own))))
    strides, step = [0] * len(own), itemsize
    for axis in axes:
        strides[axis] = step * draw(st.sampled_from([1, 1, 1, -1, 2, 0]))
        step *= own[axis] + draw(st.sampled_from([0, 0, 0, 1, 4]))
    array = at(0x1000 + itemsize * draw(st.sampled_from([0, 0, 0, 1])))
    array.shape, array.strides, array.ndim = own, tuple(strides), len(own)
    return array


@anything(st.data())
def test_the_key_of_a_walk_says_which_form_and_the_walk_is_its(data):
    """Whatever the lengths: of two calls with one key both have one form; each has the walk of its plan."""
    draw = data.draw
    ndim = draw(st.integers(0, 4))
    dtypes = [np.dtype(draw(st.sampled_from(["f4", "f8", "i1"]))) for _ in range(draw(st.integers(1, 3)))]
    into, fortran = draw(st.booleans()), draw(st.booleans())
    flat = draw(st.booleans())
    inputs = [Operand(dtype, "strided") for dtype in dtypes]
    if flat:
        inputs.insert(0, Operand(np.dtype("f4"), "flat"))
    step = Step("add", None, (inputs[0].dtype,) * 2, np.dtype("f4"))
    program = Program(tuple(inputs), ((step, (0, 0)),), (len(inputs),), ndim, into)
    places = [i for i, one in enumerate(inputs) if one.mode == "strided"]
    driver = Driver([])
    launch = launch_of(driver, (0,) * len(inputs), (), strided=tuple([(i, inputs[i].dtype.itemsize) for i in places]),
                       pack=vector_length(program), into=into)
    forms = {}
    for _ in range(6):
        shape = tuple(draw(st.sampled_from([1, 2, 3, 4, 5, 8, 16, 20, 40])) for _ in range(ndim))
        arguments = [operand(draw, shape, one.dtype.itemsize) for one in inputs]
        strided = [arguments[i] for i in places]
        found = plan(program, lengths_in(shape, fortran), [strides_in(array, shape, fortran) for array in strided],
                     [not array.data.ptr % VECTOR for array in arguments])
        key = launch.key(arguments, shape, fortran)
        if type(key) is bytes:
            assert not found.form.tile and forms.setdefault(key, found.form) == found.form
            launch.plans[key] = launch_of(driver, (0,) * len(inputs), (), elements=found.form.elements, told=False,
                                          walks=bool(found.walk))
            driver.formats = [POINTER] * len(inputs) + [LONG] + [ctypes.c_byte * len(found.walk)] * bool(found.walk)
            assert launch(arguments, shape, fortran) == []
            _, blocks, _, _, _, values, _ = driver.calls.pop()
            assert blocks[0] == found.blocks and values[len(inputs)] == int(np.prod(shape))
            assert b"".join(map(bytes, values[len(inputs) + 1:])) == found.walk


@pytest.mark.parametrize("shape, strides", [
    ((1 << 16, 1 << 16), (1 << 17, 1)), ((30, 40), (1, 30)), ((2,) * 9, (1,) * 9),
])
def test_what_goes_by_lengths_is_known_by_them(shape, strides):
    array = at(0)
    array.shape, array.strides = shape, strides
    launch = launch_of(Driver([]), (0,), strided=((0, 1),))
    assert launch.key([array], shape, False) == (shape, False, 1, shape, strides)


def test_nothing_is_kept_of_a_call_and_all_goes_with_it():
    class Owner:
        pass

    driver, owner = Driver([POINTER, POINTER, LONG, INT]), Owner()
    launch, argument, shape = launch_of(driver, (0,), owner=owner), at(16), (3, 4)
    before = sys.getrefcount(argument), sys.getrefcount(shape)
    for _ in range(10):
        launch([argument], shape, False)
    driver.calls.clear()
    assert (sys.getrefcount(argument), sys.getrefcount(shape)) == before
    gone = weakref.ref(owner)
    del owner, launch
    gc.collect()
    assert gone() is None


def test_a_cycle_through_it_is_found():
    class Owner:
        pass

    owner = Owner()
    owner.launch = launch_of(Driver([]), (), owner=owner)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_several_threads():
    driver = Driver([POINTER, POINTER, LONG, INT])
    launch = launch_of(driver, (0,))
    threads = [threading.Thread(target=lambda: [launch([at(16)], (3,), False) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(driver.calls) == 800


def test_keywords_are_refused():
    for launch in (launch_of(Driver([]), ()), TestReduction().reduction_of(Driver([]), ())):
        with pytest.raises(TypeError, match="no keywords"):
            launch([], (3,), False, stream=1)


class TestReduction:
    """The launch of a kernel that reduces: parameters are the inputs, out, parts, turns, six numbers, divisor, walk."""

    KINDS = (*[POINTER] * 3, *[LONG] * 3, *[INT] * 3, ctypes.c_double, ctypes.c_char * 8)

    def reduction_of(self, driver, sizes=(0, 4), shared=True, parts=None, numbers=(2, 3, 4, 5, 6, 7), blocks=11,
                     walk=b"walkwalk", owner=None, array=Array, otherwise=lambda *given: ("otherwise", *given)):
        self.turns = {"stream": at(0x300)} if shared else None
        return _native.launch.Reduction(
            99, driver.address, owner, array, lambda: SimpleNamespace(ptr=5), sizes, "f8", blocks, 256, numbers, 0x40,
            parts, "u1", self.turns, walk, otherwise)

    def test_what_a_kernel_is_given(self):
        driver = Driver([POINTER, ctypes.c_float, *self.KINDS])
        result = self.reduction_of(driver)([at(0x100), np.float32(2.5)], 0.5, (5, 1), "stream")
        assert result.given == ((5, 1), "f8", None, None, "C")
        (function, blocks, threads, shared, stream, values, extra), = driver.calls
        assert (function, blocks, threads, shared, stream, extra) == (99, (11, 1, 1), (256, 1, 1), 0, 5, None)
        assert values[:-1] == [0x100, 2.5, 0x7000, 0x340, 0x300, 2, 3, 4, 5, 6, 7, 0.5]
        assert values[-1].value == b"walkwalk"

    def test_parts_of_their_own(self):
        driver, made = Driver(self.KINDS), []

        class Noted(Array):
            def __init__(self, *given):
                super().__init__(*given)
                made.append(given)
                self.data.ptr += 0x100 * len(made)

        assert self.reduction_of(driver, (), parts=(77,), array=Noted)([], 1, (), "stream").given[0] == ()
        assert made == [((), "f8"), ((77,), "u1")] and driver.calls[0][5][:3] == [0x7100, 0x7200, 0x300]

    def test_one_block_for_each_result(self):
        driver = Driver(self.KINDS)
        self.reduction_of(driver, (), shared=False)([], 1, (3,), "any")
        assert driver.calls[0][5][:3] == [0x7000] * 3

    @pytest.mark.parametrize("stream, number, error, calls", [
        ("another", np.float32(2), 0, 0), ("stream", np.float64(2), 0, 0), ("stream", 2.5, 0, 0),
        ("stream", np.float32(2), 201, 1)], ids=["no counters", "a long number", "Python's number", "an error"])
    def test_what_is_done_otherwise(self, stream, number, error, calls):
        driver = Driver([POINTER, ctypes.c_float, *self.KINDS])
        driver.error = error
        given = [at(0x100), number], 0.5, (5,), stream
        assert self.reduction_of(driver)(*given) == ("otherwise", *given) and len(driver.calls) == calls

    def test_errors_are_not_hidden(self):
        class Full(Array):
            def __init__(self, *given):
                raise MemoryError

        driver = Driver(self.KINDS)
        with pytest.raises(MemoryError):
            self.reduction_of(driver, (), array=Full)([], 1, (), "stream")
        with pytest.raises(TypeError, match="unhashable"):
            self.reduction_of(driver, ())([], 1, (), [])
        with pytest.raises(AttributeError):
            self.reduction_of(driver, (0,))([3], 1, (), "stream")
        with pytest.raises(TypeError, match="1 arguments, not 0"):
            self.reduction_of(driver, (0,))([], 1, (), "stream")
        with pytest.raises(ZeroDivisionError):
            self.reduction_of(driver, (), otherwise=lambda *given: 1 / 0)([], 1, (), "another")
        assert not driver.calls

    @pytest.mark.parametrize("settings", [
        {"sizes": (17,)}, {"sizes": (0,) * (_native.launch.MOST - _native.launch.AFTER + 1)}, {"blocks": 0},
        {"blocks": 2**31}, {"numbers": (1, 2)}, {"numbers": (1, 2, 3, 4, 5, 2**31)}, {"parts": 3}, {"walk": "text"},
    ])
    def test_what_it_is_made_from(self, settings):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            self.reduction_of(Driver([]), **settings)

    def test_as_many_inputs_as_there_may_be(self):
        count = _native.launch.MOST - _native.launch.AFTER
        driver = Driver([POINTER] * count + list(self.KINDS))
        assert self.reduction_of(driver, (0,) * count)([at(16 * i) for i in range(count)], 1, (), "stream")
        assert driver.calls[0][5][:count] == [16 * i for i in range(count)]

    def test_nothing_is_kept_of_a_call_and_all_goes_with_it(self):
        class Owner:
            pass

        driver, owner, argument, shape = Driver([POINTER, *self.KINDS]), Owner(), at(16), (3, 4)
        owner.launch = launch = self.reduction_of(driver, (0,), owner=owner, parts=(7,))
        counters = self.turns["stream"]
        before = [sys.getrefcount(x) for x in (argument, shape, counters)]
        for _ in range(10):
            launch([argument], 1, shape, "stream")
        driver.calls.clear()
        assert [sys.getrefcount(x) for x in (argument, shape, counters)] == before
        gone = weakref.ref(owner)
        del owner, launch
        gc.collect()
        assert gone() is None


def test_what_was_not_made():
    launch, reduction = _native.launch.Launch.__new__(_native.launch.Launch), _native.launch.Reduction
    for call in (lambda: launch([], (), False), lambda: launch.key([], (), False),
                 lambda: reduction.__new__(reduction)([], 1.0, (), None)):
        with pytest.raises(TypeError, match="not made"):
            call()


def test_more_elements_than_can_be_counted():
    driver = Driver([])
    assert launch_of(driver, ())([], (2**40, 2**40), False) is None
    assert launch_of(driver, ())([], (2**40, 2**40, 0), False) is None and not driver.calls


class TestByFormats:
    """`launched`, which has parameters of all kinds."""

    KINDS = {"Q": ctypes.c_uint64, "q": ctypes.c_int64, "I": ctypes.c_uint32, "i": ctypes.c_int32, "d": ctypes.c_double}

    def launched(self, formats, values, blocks=7, threads=64, error=0, function=99):
        driver = Driver([self.KINDS[kind] for kind in formats])
        driver.error = error
        status = _native.launch.launched(function, driver.address, formats.encode(), Array,
                                         lambda: SimpleNamespace(ptr=5), blocks, threads, values)
        return status, driver.calls

    def test_what_a_kernel_is_given(self):
        values = [at(0x100), 2**64 - 1, 0, -(2**63), 2**32 - 1, -1, 0.1, 3]
        status, calls = self.launched("QQQqIidd", values)
        assert status == 0
        given = [0x100, 2**64 - 1, 0, -(2**63), 2**32 - 1, -1, 0.1, 3.0]
        assert calls == [(99, (7, 1, 1), (64, 1, 1), 0, 5, given, None)]

    def test_scalars_of_numpys(self):
        values = [np.uint64(2**64 - 1), np.int64(-5), np.uint32(2**32 - 1), np.int32(-2), np.float32(0.5), 1]
        status, calls = self.launched("QqIidd", values)
        assert status == 0 and calls[0][5] == [2**64 - 1, -5, 2**32 - 1, -2, 0.5, 1.0]
        status, calls = self.launched("qQIi", [np.uint8(200), np.int16(3), np.uint16(4), np.int8(-1)])
        assert status == 0 and calls[0][5] == [200, 3, 4, -1]

    @pytest.mark.parametrize("blocks, threads, function", [(0, 64, 99), (2**31, 64, 99), (7, 0, 99), (7, 64, 0)])
    def test_what_cuda_would_refuse(self, blocks, threads, function):
        status, calls = self.launched("q", [1], blocks, threads, function=function)
        assert status == 1 and not calls

    def test_a_status_of_cudas(self):
        assert self.launched("q", [1], error=700)[0] == 700

    @pytest.mark.parametrize("formats, values", [
        ("Q", ["7"]), ("q", [1.5]), ("d", ["x"]), ("Q", [-1]), ("q", [2**63]), ("d", [None]), ("q", [object()])])
    def test_what_is_no_such_value(self, formats, values):
        with pytest.raises((TypeError, OverflowError)):
            self.launched(formats, values)

    def test_wrong_calls(self):
        for given in ((), (1,) * 8, (1, 1, b"q", Array, None, 1, 1, []), (1, 1, b"q" * 65, Array, None, 1, 1, [1] * 65),
                      (1, 1, b"z", Array, None, 1, 1, [1])):
            with pytest.raises(TypeError):
                _native.launch.launched(*given)
