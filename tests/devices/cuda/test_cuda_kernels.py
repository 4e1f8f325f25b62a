"""Kernels of recorded work: they compile for every ufunc and dtype, and give the bits that CuPy's own kernels give."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import lazyarray
from lazyarray.storage import handles

ON_CUDA = lazyarray.device().name == "cuda"
if importlib.util.find_spec("cupy") is None:
    pytest.skip("CuPy is not installed: there is nothing to make kernels of", allow_module_level=True)

import cupy  # noqa: E402
from nvrtc import DTYPES, compiled, loops  # noqa: E402
from walks import program_of, walks  # noqa: E402

from lazyarray.devices.cuda.kernels import elementwise_source, launch_plan  # noqa: E402
from lazyarray.devices.program import Operand, Program, Step  # noqa: E402


def one_of_each(dtype, modes):
    """A program with every step on the same operands, all of them kept."""
    inputs = tuple(Operand(dtype, mode) for mode in modes)
    steps = tuple((step, tuple(range(len(step.inputs)))) for step in loops(dtype) if len(step.inputs) <= len(inputs))
    return Program(inputs, steps, tuple(len(inputs) + i for i in range(len(steps))), 2 if "strided" in modes else 0)



def forms(program):
    """A form for each way in which a kernel is written."""
    reads = tuple("any" if operand.mode == "strided" else operand.mode for operand in program.inputs)
    if "any" not in reads:
        return {"packs": launch_plan.packed(program, reads, 0, False), "single": launch_plan.general(program, False),
                "wide": launch_plan.packed(program, reads, 0, True)}
    found = {f"any{ndim}{wide:d}": launch_plan.general(program, bool(wide), reads, ndim)
             for ndim in (1, 2, 3) for wide in (0, 1)}
    for read in ("same", "along"):
        nearer = tuple(read if r == "any" else r for r in reads)
        if program.into and reads[-1] == "any":
            nearer = *nearer[:-1], "along"
        found[read] = launch_plan.packed(program, nearer, 2, False)
        found[f"{read}_general"] = launch_plan.general(program, False, nearer, 2)
    for wide in (0, 1):
        turned = tuple("tile" if r == "any" else r for r in reads)
        if program.into:        # it is not read
            turned = *turned[:-1], reads[-1]
        found[f"tile{wide}"] = launch_plan.Form(turned, 3, 1, 4, bool(wide), tile=(32, 32, 256))
        found[f"rows{wide}"] = launch_plan.Form(reads, 3, 1, 8, bool(wide), tile=(8, 128, 128))
    if program.inputs[0].dtype.itemsize <= 4:
        found["large"] = launch_plan.Form(turned, 3, 1, 8, False, tile=(64, 64, 512))
    if reads == ("any", "any"):
        found |= {f"{name}_shared": found[name]._replace(walks=(0, 0)) for name in ("any20", "tile1", "rows0")}
    return found


@pytest.mark.parametrize("dtypes", [[d for d in DTYPES if d.kind in "iu"], *(
    [d] for d in DTYPES if d.kind not in "iu")], ids=lambda dtypes: dtypes[-1].name)
def test_every_ufunc_compiles(dtypes):
    inputs, steps = [], []
    for dtype in dtypes:
        found = loops(dtype)
        assert len(found) >= (10 if dtype.kind == "b" else 15)
        steps += [(step, tuple(len(inputs) + i for i in range(len(step.inputs)))) for step in found]
        inputs += [Operand(dtype, "flat")] * 3
    program = Program(tuple(inputs), tuple(steps), tuple(len(inputs) + i for i in range(len(steps))), 0)
    # Integers together: most of their time goes into CUDA's headers.
    text = elementwise_source.source(program, cupy, {"once": launch_plan.Form(("flat",) * len(inputs), 0, 1, 1, False)})
    assert text is not None and compiled(text) == ""


@pytest.mark.parametrize("modes", [("flat", "value"), ("strided", "flat"), ("strided", "strided")], ids="-".join)
@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "f4", "c16"])
def test_every_form_compiles(dtype, modes):
    dtype = np.dtype(dtype)
    step = Step("not_equal", cupy.not_equal, (dtype, dtype), np.dtype(bool))
    last = Step("maximum", cupy.maximum, (dtype, dtype), dtype)
    inputs = tuple(Operand(dtype, mode) for mode in modes)
    program = Program(inputs, ((step, (0, 1)), (last, (1, 0))), (2, 3), 2 if "strided" in modes else 0)
    text = elementwise_source.source(program, cupy, forms(program))
    assert text is not None
    sizes = [f'static_assert(sizeof(Walk_{name}) == {launch_plan.walk_size(form)}, "as large as what is passed");'
             for name, form in forms(program).items() if form.ndim]
    assert compiled(text + "\n".join(sizes)) == ""


@pytest.mark.parametrize("modes", [("flat", "value", "flat"), ("strided", "flat", "flat"),
                                   ("flat", "flat", "strided"), ("strided", "value", "strided"),
                                   ("strided", "strided", "strided")], ids="-".join)
@pytest.mark.parametrize("dtype", ["?", "f4", "c16"])
def test_every_form_that_writes_in_place_compiles(dtype, modes):
    dtype = np.dtype(dtype)
    step = Step("not_equal", cupy.not_equal, (dtype, dtype), np.dtype(bool))
    last = Step("maximum", cupy.maximum, (dtype, dtype), dtype)
    inputs = tuple(Operand(dtype, mode) for mode in modes)
    program = Program(inputs, ((step, (0, 1)), (last, (1, 0))), (3, 4), 2 if "strided" in modes else 0, True)
    text = elementwise_source.source(program, cupy, forms(program))
    assert text is not None and "__restrict__ p" not in text and "q1" not in text
    sizes = [f'static_assert(sizeof(Walk_{name}) == {launch_plan.walk_size(form)}, "as large as what is passed");'
             for name, form in forms(program).items() if form.ndim]
    assert compiled(text + "\n".join(sizes)) == ""


def ptx_of(dtype, steps, count):
    """What the compiler makes of steps on so many inputs; the second one is a number."""
    inputs = tuple(Operand(dtype, "value" if i == 1 else "flat") for i in range(count))
    program = Program(inputs, steps, (count + len(steps) - 1,), 0)
    return compiled(elementwise_source.source(program, cupy, {"fused": launch_plan.general(program, False)}), ptx=True)


def compared(name, dtype):
    return Step(name, getattr(cupy, name), (dtype, dtype), np.dtype(bool))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "i8"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_whole_numbers_may_wrap_around(dtype, name):
    """In C they may be taken not to, and then ``x + 1 > x`` needs no x."""
    dtype = np.dtype(dtype)
    step = Step(name, getattr(cupy, name), (dtype, dtype), dtype)
    assert "ld.global" in ptx_of(dtype, ((step, (0, 1)), (compared("greater", dtype), (2, 0))), 2)


@pytest.mark.parametrize("dtype", ["i2", "u2"])
def test_no_negation_of_16_bits_is_left_to_the_assembler(dtype):
    dtype = np.dtype(dtype)
    step = Step("negative", cupy.negative, (dtype,), dtype)
    text = ptx_of(dtype, ((step, (0,)), (compared("equal", dtype), (3, 2))), 3)
    assert "neg.s32" in text and "neg.s16" not in text


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "i8"])
def test_what_wraps_around_on_a_gpu(dtype):
    limits = np.iinfo(dtype)
    plain = np.array([limits.min, limits.min + 1, 0, 1, 2, limits.max - 1, limits.max] * 5, dtype)
    x, y = lazyarray.asarray(plain), lazyarray.asarray(plain[::-1].copy())
    with np.errstate(all="ignore"):
        for _ in range(3):      # the kernel is there from the second time on
            for work in (lambda x, y: x + 1 > x, lambda x, y: x - 1 < x, lambda x, y: -x == y, lambda x, y: x * 2 >= x,
                         lambda x, y: -(x << 1) == y, lambda x, y: np.abs(x) >= 0, lambda x, y: (-x == -x).all(),
                         lambda x, y: np.square(x) >= 0, lambda x, y: (x << 3) * 2 == x * 16):
                assert np.array_equal(work(x, y), work(plain, plain[::-1]))
            lazyarray.device().wait_for_kernels()


def softplus(dtype):
    """A program, and the form that loads packs."""
    dtype = np.dtype(dtype)
    steps = {step.name: step for step in loops(dtype)}
    program = Program((Operand(dtype, "flat"), Operand(dtype, "value")), (
        (steps["absolute"], (0,)), (steps["negative"], (2,)), (steps["exp"], (3,)), (steps["log1p"], (4,)),
        (steps["maximum"], (1, 0)), (steps["add"], (6, 5))), (7,), 0)
    return program, launch_plan.packed(program, ("flat", "value"), 0, False)


def test_a_chain_compiles_and_reads_each_input_once():
    program, form = softplus("f4")
    text = elementwise_source.source(program, cupy, {"fused": form})
    assert compiled(text) == ""
    assert text.count("lz_load<float, 4>(p0") == 1 and elementwise_source.vector_length(program) == 4


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_what_a_step_branches_on_has_nothing_written_twice(dtype):
    program, form = softplus(dtype)
    made = compiled(elementwise_source.source(program, cupy, {"fused": form}), ptx=True)
    assert made.count("ex2.approx") == form.units * form.pack


def test_what_holds_much_is_computed_element_by_element():
    """All elements at once take so many registers that few threads are there to wait for the memory."""
    dtype = np.dtype("f8")
    steps = {step.name: step for step in loops(dtype)}

    def text_of(inputs, *named):
        program = Program((Operand(dtype, "flat"),) * inputs, tuple((steps[name], numbers) for name, numbers in named),
                          (inputs + len(named) - 1,), 0)
        form = launch_plan.packed(program, ("flat",) * inputs, 0, False)
        text = elementwise_source.source(program, cupy, {"fused": form})
        assert compiled(text) == ""
        return text

    little = text_of(2, ("exp", (0,)), ("exp", (1,)), ("add", (2, 3)), ("log1p", (4,)))
    much = text_of(3, ("exp", (0,)), ("add", (3, 1)), ("log1p", (4,)), ("add", (5, 2)))
    assert "[j] = " in little and "[j] = " not in much
    assert "[j] = " in text_of(1, ("exp", (0,)), ("multiply", (0, 1)))
    assert "[j] = " not in text_of(1, ("exp", (0,)), ("sin", (0,)), ("add", (1, 2)), ("multiply", (0, 3)))


@pytest.mark.parametrize(("name", "other"), [("maximum", "fmax"), ("minimum", "fmin")])
def test_the_larger_of_two_doubles_is_selected(name, other):
    dtype = np.dtype("f8")

    def branches(name):
        step = Step(name, getattr(cupy, name), (dtype, dtype), dtype)
        program = Program((Operand(dtype, "flat"),) * 2, ((step, (0, 1)),), (2,), 0)
        form = launch_plan.packed(program, ("flat", "flat"), 0, False)
        return compiled(elementwise_source.source(program, cupy, {"fused": form}), ptx=True).count("bra")

    assert branches(name) == branches(other)


def test_steps_that_ask_where_they_are_and_programs_without_inputs_compile():
    n = np.dtype("i8")
    double = Step("multiply", cupy.multiply, (n, n), n)
    index = Step("index", None, (), n, None, True)
    program = Program((Operand(n, "value"),), ((index, ()), (double, (1, 0))), (2,), 0)
    assert compiled(elementwise_source.source(program, cupy, forms(program))) == ""


def test_products_and_sums_of_two_steps_are_not_contracted():
    f = np.dtype("f4")
    steps = {step.name: step for step in loops(f)}
    program = Program((Operand(f, "flat"),) * 2, ((steps["multiply"], (0, 1)), (steps["add"], (2, 1))), (3,), 0)
    text = elementwise_source.source(program, cupy, forms(program))
    assert "lz_mul(in0, in1)" in text and "lz_add(in0, in1)" in text


def test_a_step_that_cupy_has_no_snippet_for_is_not_fused():
    f = np.dtype("f4")
    strange = Step("add", None, (f, np.dtype("i1")), f)
    program = Program((Operand(f, "flat"),) * 2, ((strange, (0, 1)),), (2,), 0)
    assert elementwise_source.source(program, cupy, forms(program)) is None


#: Shapes of more than 2 ** 31 elements, and what is read along them of an array of that shape.
LARGE = {
    "line": (((1 << 31) + 5,), lambda x: x),
    "backwards": (((1 << 31) + 5,), lambda x: x[::-1]),
    "row": ((1 << 16, (1 << 15) + 16), lambda x: x[0]),
    "column": ((1 << 16, (1 << 15) + 16), lambda x: x[:, :1]),
    "transposed": (((1 << 15) + 16, 1 << 16), lambda x: x.reshape(1 << 16, -1).T),
}


@pytest.mark.skipif(not ON_CUDA, reason="needs a GPU")
class TestOnTheGpu:
    """Each step in a kernel of its own and in a chain, against CuPy's own kernel, to the last bit."""

    @staticmethod
    def operand(dtype, n, seed=0):
        values = np.random.default_rng(seed).uniform(-3, 3, n)
        if dtype.kind == "u":
            values = abs(values) * 5
        found = values + 1j * values[::-1] if dtype.kind == "c" else values
        found = found.astype(dtype)
        if dtype.kind == "f":
            found[:6] = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1][:n]
        return cupy.asarray(found)

    @pytest.mark.parametrize("n", [1, 1000, 4099])
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_one_step(self, dtype, n):
        a, b = self.operand(dtype, n), self.operand(dtype, n, 1)
        b[b == 0] = 1
        program = one_of_each(dtype, ("flat", "flat"))
        kernels = lazyarray.device().kernels
        kernels.get(program, n)
        kernels.wait()
        kernel = kernels.get(program, n)
        assert kernel is not None
        for outputs in (kernel([a, b], (n,), False), kernel([a[:0 or None], b.copy()], (n,), False)):
            for (step, operands), found in zip(program.steps, outputs):
                expected = step.function(*[(a, b)[i] for i in operands])
                same = (found == expected) | ((found != found) & (expected != expected))
                if found.dtype.kind == "c":
                    # Within a product of complex numbers the compiler may contract, as it likes in each kernel.
                    same |= abs(found - expected) <= np.finfo(found.dtype).eps * abs(expected)
                assert bool(same.all()), (step, a[~same][:3], b[~same][:3], found[~same][:3], expected[~same][:3])

    @pytest.mark.parametrize("offset", [0, 1])
    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
    def test_a_chain(self, dtype, offset):
        dtype = np.dtype(dtype)
        device = self.operand(dtype, 5000)[6 + offset:]
        x = lazyarray.asarray(device.copy() if not offset else device)
        with lazyarray.options(defer_from=None):
            expected = np.asarray(self.work(x))
        for _ in range(3):
            found = self.work(x)
            handles.device_of(found)
            lazyarray.device().kernels.wait()
        assert np.array_equal(np.asarray(found), expected, equal_nan=True)

    @staticmethod
    def work(x):
        y = np.exp(x * 2 + 1) - x * x
        return (y + x) * x - abs(x) * np.sqrt(y * y + 2)

    @staticmethod
    def both(program, arguments, shape, fortran):
        """What the general form gives, and the one for these strides."""
        kernels = lazyarray.device().kernels
        for _ in range(2):
            if kernels.get(program, max(int(np.prod(shape)), 1)) is None:
                kernels.wait()
            yield kernels.get(program, int(np.prod(shape)))(arguments, shape, fortran)
            kernels.wait()

    @pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f4", "i8", "c8", "c16"])
    def test_every_walk(self, dtype):
        dtype = np.dtype(dtype)
        for name, (shape, operands, _, _) in walks(cupy, dtype).items():
            dense = cupy.asarray(np.random.default_rng(1).uniform(0, 3, shape).astype(dtype))
            program = program_of(cupy, dtype, len(operands), len(shape))
            expected = program.run([*operands, dense])
            for outputs in self.both(program, [*operands, dense], shape, False):
                assert all(found.flags.c_contiguous and bool((found == e).all())
                           for found, e in zip(outputs, expected)), name
            turned = [cupy.broadcast_to(operand, shape).T for operand in operands]
            for outputs in self.both(program, [*turned, dense.T], shape[::-1], True):
                assert all(found.flags.f_contiguous and bool((found == e.T).all())
                           for found, e in zip(outputs, expected)), name

    @pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "c16"])
    def test_every_length_and_start(self, dtype):
        dtype = np.dtype(dtype)
        line = self.operand(dtype, 5000)
        line[line != line] = 1
        program = program_of(cupy, dtype, 1, 1, "flat")
        for n in (1, 2, 3, 15, 16, 17, 127, 128, 129, 255, 1023, 1024, 1025, 2047, 2049, 4097):
            for starts in ((0, 0), (16, 0), (0, 1), (1, 1), (3, 16)):
                operands = [line[start:start + n] for start in starts]
                expected = program.run(operands)
                for outputs in self.both(program, operands, (n,), False):
                    assert all(bool((found == e).all()) for found, e in zip(outputs, expected)), (n, starts)

    @pytest.mark.parametrize("dtype", ["?", "f2", "f4", "i8", "c16"])
    def test_every_walk_is_written_to_every_place(self, dtype):
        dtype = np.dtype(dtype)
        kernels = lazyarray.device().kernels
        for name, (shape, operands, _, _) in walks(cupy, dtype).items():
            dense = cupy.asarray(np.random.default_rng(1).uniform(0, 3, shape).astype(dtype))
            expected, differs = program_of(cupy, dtype, len(operands), len(shape)).run([*operands, dense])
            for place, (memory, target) in self.places(shape, dtype).items():
                made = program_of(cupy, dtype, len(operands), len(shape))
                flat = target.flags.c_contiguous
                program = Program((*made.inputs, Operand(dtype, "flat" if flat else "strided")), tuple([
                    (step, tuple([o + (o >= len(made.inputs)) for o in of])) for step, of in made.steps]), tuple([
                        o + 1 for o in made.outputs[::-1]]), len(shape), True)
                outside = memory.copy()
                arguments = [*operands, dense, target]
                for _ in range(3):
                    kernel = kernels.get(program, max(int(np.prod(shape)), 1))
                    if kernel is None or not kernel.prepare(arguments, shape, False):
                        kernels.wait()
                        continue
                    outputs = kernel.launch(arguments, shape, False)
                    assert len(outputs) == 1 and bool((outputs[0] == differs).all()), (name, place)
                    assert bool((target == expected).all()), (name, place)
                    break
                else:
                    raise AssertionError(f"there is no kernel: {name}, {place}")
                target[...] = 0
                seen = cupy.ndarray(target.shape, target.dtype, outside.data + (target.data.ptr - memory.data.ptr),
                                    target.strides)
                seen[...] = 0
                assert bool((memory == outside).all()), f"more was written: {name}, {place}"

    @staticmethod
    def places(shape, dtype):
        """Memory, and a view of this shape in it, of each kind."""
        def within(lead, larger, cut):
            memory = cupy.ones(int(np.prod(larger)) + lead, dtype)
            return memory, cut(memory[lead:].reshape(larger))

        found = {"dense": within(0, shape, lambda m: m), "beside a boundary": within(1, shape, lambda m: m)}
        if shape:
            found |= {
                "inside": within(0, tuple(n + 2 for n in shape), lambda m: m[tuple(slice(1, 1 + n) for n in shape)]),
                "every other": within(0, (*shape[:-1], 2 * shape[-1]), lambda m: m[..., ::2]),
                "backwards": within(0, shape, lambda m: m[..., ::-1]),
                "turned": within(0, shape[::-1], lambda m: m.T),
                "wider rows": within(0, (*shape[:-1], shape[-1] + 16), lambda m: m[..., :shape[-1]]),
            }
        return found

    @pytest.mark.parametrize("dtype", ["f4", "c16"])
    def test_what_is_read_is_written(self, dtype):
        """The same elements, in one place: each is read before it is written."""
        kernels = lazyarray.device().kernels
        random = np.random.default_rng(3)
        add = Step("add", cupy.add, (np.dtype(dtype),) * 2, np.dtype(dtype))
        for shape in ((5000,), (130, 257), (64, 64), (3, 40, 50)):
            for place, (_, target) in self.places(shape, np.dtype(dtype)).items():
                other = cupy.asarray(random.uniform(1, 2, shape).astype(dtype))
                mode = "flat" if target.flags.c_contiguous else "strided"
                program = Program((Operand(add.output, mode), Operand(add.output, "flat"), Operand(add.output, mode)),
                                  ((add, (0, 1)),), (3,), len(shape), True)
                arguments = [target, other, target]
                target[...] = cupy.asarray(random.uniform(1, 2, shape).astype(dtype))
                for _ in range(4):
                    expected = target + other
                    kernel = kernels.get(program, target.size)
                    if kernel is None or not kernel.prepare(arguments, shape, False):
                        kernels.wait()
                        continue
                    assert kernel.launch(arguments, shape, False) == []
                    assert bool((target == expected).all()), (shape, place)

    @pytest.mark.parametrize("name", LARGE)
    def test_more_elements_than_32_bits_count(self, name):
        shape, of = LARGE[name]
        cupy.get_default_memory_pool().free_all_blocks()
        count = cupy.arange(int(np.prod(shape)), dtype="u4")
        count *= cupy.uint32(2654435761)
        count >>= 16
        dense, other = count.astype("i1").reshape(shape), (count >> 8).astype("i1").reshape(shape)
        del count
        operand = of(other)
        program = program_of(cupy, dense.dtype, 1, len(shape), "flat" if operand is other else "strided")
        expected = program.run([operand, dense])
        for outputs in self.both(program, [operand, dense], shape, False):
            assert all(bool((found == e).all()) for found, e in zip(outputs, expected))

    def test_a_second_process_finds_its_kernels_on_disk(self, tmp_path):
        code = """
import sys, numpy as np, cupy, lazyarray
from cupy.cuda import compiler
from lazyarray.storage import handles as wrap
compiled, real = [], compiler._compile_using_nvrtc_no_warning
def compile_(source, *args, **kwargs):
    compiled.append(" fused(" in source)
    return real(source, *args, **kwargs)
compiler._compile_using_nvrtc_no_warning = compile_
x = lazyarray.asarray(np.ones(1 << 20, np.float32))
with lazyarray.options(defer_from=0):
    for _ in range(2):
        np.asarray(np.exp(x * 3) - x)
        lazyarray.device().kernels.wait()
assert any(lazyarray.device().kernels._known.values())
print(sum(compiled))
"""
        environment = {**os.environ, "CUPY_CACHE_DIR": str(tmp_path)}
        counts = []
        for _ in range(2):
            done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True,
                                  timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            counts.append(int(done.stdout.split()[-1]))
        assert counts[0] > 0 and counts[1] == 0

    def test_rows_columns_and_transposes(self):
        matrix = lazyarray.asarray(self.operand(np.dtype("f4"), 60 * 50).reshape(60, 50))
        for other in (matrix[0], matrix[:, :1], matrix[:1, :1]):
            for x in (matrix, matrix.T):
                other = other if x is matrix else other.T.copy() if other.ndim == 2 else matrix.T[0].copy()
                for _ in range(3):
                    found = (x - other) * 2 + other
                    handles.device_of(found)
                    lazyarray.device().kernels.wait()
                with lazyarray.options(defer_from=None):
                    expected = (x - other) * 2 + other
                assert found.strides == expected.strides
                assert np.array_equal(np.asarray(found), np.asarray(expected), equal_nan=True)

    def test_a_program_that_was_never_seen_does_not_wait_for_the_compiler(self):
        import time

        kernels = lazyarray.device().kernels
        kernels.wait()
        x = lazyarray.asarray(np.ones(1000, np.float32)) * 1
        handles.device_of(x)
        for single in (np.tan, np.cosh):        # the kernels of one step, and CuPy's own
            handles.device_of(single(x))
            with lazyarray.options(defer_from=None):
                handles.device_of(single(x))
        kernels.wait()
        start = time.thread_time()      # neighbours may keep a thread waiting
        for number in np.random.default_rng().integers(0, 2, 20):       # on no disk
            x = np.tan(x) if number else np.cosh(x)
        handles.device_of(x)
        taken = time.thread_time() - start
        assert kernels._waiting, "it is compiled beside"
        kernels.wait()
        assert taken < 0.05     # NVRTC takes longer
