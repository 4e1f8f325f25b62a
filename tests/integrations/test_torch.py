"""Torch: tensors and lazy arrays on one memory, torch functions on lazy arrays, DataLoader."""
from __future__ import annotations

import contextlib
import os
import runpy
import sys
import warnings

import numpy as np
import pytest

import lazyarray
from lazyarray.array import sequence_slot
from lazyarray.testing import assert_copies

torch = pytest.importorskip("torch")
from lazyarray.integrations import torch as lazytorch  # noqa: E402

ON_CUDA = lazyarray.device().name == "cuda"
if ON_CUDA and not torch.cuda.is_available():
    pytest.skip("this torch has no CUDA", allow_module_level=True)
PLACE = "cuda" if ON_CUDA else "cpu"
on_cuda = pytest.mark.skipif(not ON_CUDA, reason="CUDA tensors need a GPU")
PLAIN = np.arange(6.0).reshape(2, 3)
DTYPES = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128").split()


@pytest.fixture
def x():
    return lazyarray.asarray(PLAIN)


def values(dtype, shape=(3, 4)):
    return (np.arange(np.prod(shape)) % 5).reshape(shape).astype(dtype)


# From a lazy array to a tensor.

DOORS = {"as_tensor": torch.as_tensor, "from_dlpack": torch.from_dlpack, "shared": lazytorch.as_tensor}
HAS_BUFFER = sys.version_info >= (3, 12)


@pytest.mark.parametrize("door", DOORS)
def test_a_tensor_and_the_array_that_it_was_made_of_are_one_memory(door, x):
    # Without a GPU torch's own doors lead to the host, where the tensor lies over an alias.
    copied = not ON_CUDA and door != "shared"
    with assert_copies(uploads=0, materialisations=int(copied)):
        tensor = DOORS[door](x)
    assert tensor.device.type == PLACE
    assert (tensor.dtype, tuple(tensor.shape)) == (torch.float64, (2, 3))
    assert tensor.tolist() == PLAIN.tolist()
    tensor[0, 1] = 50
    assert x[0, 1] == 50 and np.asarray(x)[0, 1] == 50
    x[1, 2] = 70
    x[0] += 1
    assert tensor.tolist() == [[1, 51, 3], [3, 4, 70]]
    tensor *= 2
    assert (x + 0).tolist() == [[2, 102, 6], [6, 8, 140]]
    np.asarray(x)[1, 0] = -1
    assert x[1, 0] == -1 and tensor[1, 0] == -1


def test_torchs_asarray_either_takes_it_for_an_array_or_refuses_it(x):
    # Before Python 3.12 nothing of ours has a buffer, which torch would take for a row of float32, whatever is in it.
    if HAS_BUFFER:
        with pytest.warns(UserWarning, match="as_tensor"), pytest.raises((BufferError, ValueError, RuntimeError)):
            torch.asarray(x)
    else:
        assert torch.asarray(x).tolist() == PLAIN.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_shared_tensor_has_every_dtype_that_torch_has(dtype):
    plain = values(dtype)
    x = lazyarray.asarray(plain)
    with assert_copies(uploads=0, materialisations=0):
        tensor = lazytorch.as_tensor(x)
        back = lazytorch.call(torch.clone, (x,), {})
    assert str(tensor.dtype) == f"torch.{dtype}" and back.dtype == dtype
    assert tensor.tolist() == plain.tolist() == back.tolist()


@pytest.mark.parametrize("view", [
    lambda a: a.T, lambda a: a[::2, 1:], lambda a: a[1], lambda a: a[:0], lambda a: a[1, 2, ...], lambda a: a[None],
    lambda a: np.broadcast_to(a, (2, 3, 4)), lambda a: a[::-1, ::-2], lambda a: a.reshape(-1)[3:],
], ids=["T", "strided", "row", "empty", "0-d", "new axis", "broadcast", "reversed", "tail"])
def test_a_view_gives_a_tensor_of_the_same_bytes(view):
    plain = values("f4")
    x = lazyarray.asarray(plain)
    part = view(x)
    tensor = lazytorch.as_tensor(part)
    expected = view(plain)
    assert (tuple(tensor.shape), tensor.tolist()) == (expected.shape, expected.tolist())
    if min(part.strides, default=0) >= 0 and part.size:
        tensor[(0,) * tensor.ndim] = 99
        assert (np.asarray(x) == 99).sum() == 1


@pytest.mark.parametrize("door", [torch.as_tensor, torch.from_dlpack, torch.tensor])
def test_negative_strides_are_refused_with_the_way_out(door, x):
    with pytest.raises((ValueError, RuntimeError)):
        door(x[::-1])
    assert door(x[::-1].copy()).tolist() == PLAIN[::-1].tolist()
    assert np.from_dlpack(x[::-1], device="cpu").tolist() == PLAIN[::-1].tolist()


@pytest.mark.parametrize("make", [lambda x: np.broadcast_to(x, (2, 2, 3)), lambda x: (x.setflags(write=False), x)[1]],
                         ids=["broadcast", "read-only"])
def test_a_read_only_array_gives_a_tensor_and_a_warning_where_it_is_shared(make, x):
    part = make(x)
    for door in (torch.as_tensor, torch.from_dlpack):
        with pytest.warns(UserWarning, match="read-only"):
            tensor = door(part)
        assert tensor.tolist() == np.asarray(part).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copied = torch.tensor(part)
        assert copied.tolist() == np.asarray(part).tolist()
        if ON_CUDA:
            assert part.__cuda_array_interface__["data"][1] is True


def test_bytes_between_elements_are_not_rounded():
    x = np.lib.stride_tricks.as_strided(lazyarray.asarray(np.arange(8, dtype="f4")), (3,), (6,))
    if lazyarray.is_lazy(x):
        with pytest.raises(BufferError, match="multiple"):
            torch.from_dlpack(x)
    part = lazyarray.asarray(np.arange(12, dtype="u1")).view("f4").view("u1")[1:9].view("f4")
    assert lazytorch.as_tensor(part).tolist() == np.arange(12, dtype="u1")[1:9].view("f4").tolist()
    with pytest.raises(ValueError, match="pass a copy"):        # else it would be written to one, and lost
        torch.add(torch.ones(2), 1, out=part)


def test_a_complex_part_is_a_view_too():
    x = lazyarray.asarray(np.array([1 + 2j, 3 - 4j]))
    lazytorch.as_tensor(x.imag)[0] = 9
    assert x.tolist() == [1 + 9j, 3 - 4j]


@pytest.mark.parametrize("plain", [np.array(["a"]), np.array([1], "M8[s]"), np.array([1], "g"), np.array([None])])
def test_what_torch_has_no_dtype_for_is_refused(plain):
    with pytest.raises(TypeError, match="astype"):
        lazytorch.as_tensor(lazyarray.asarray(plain))


def test_the_old_constructors_take_a_lazy_array_for_an_ndarray(x):
    for kind in (torch.Tensor, torch.FloatTensor, torch.DoubleTensor, torch.tensor):
        made = kind(x)
        assert made.tolist() == PLAIN.tolist()
        assert made.dtype == kind(PLAIN).dtype


def test_from_numpy_insists_on_the_struct_and_takes_the_alias(x):
    with pytest.raises(TypeError, match="ndarray"):
        torch.from_numpy(x)
    tensor = torch.from_numpy(np.asarray(x))
    tensor[0, 0] = 8
    assert x[0, 0] == 8


# From a tensor to a lazy array.

def test_a_tensor_on_the_gpu_is_shared_and_one_on_the_host_copied():
    tensor = torch.arange(6.0, device=PLACE).reshape(2, 3)
    with assert_copies(uploads=int(not ON_CUDA), materialisations=0):
        x = lazyarray.asarray(tensor)
    assert type(x) is lazyarray.LazyNdarray
    assert (x.dtype, x.tolist()) == (np.float32, tensor.tolist())
    tensor[1, 1] = 50
    assert (x[1, 1] == 50) == ON_CUDA
    x[0, 0] = 70
    assert (tensor[0, 0] == 70) == ON_CUDA
    with assert_copies(uploads=1, materialisations=1):
        assert lazyarray.asarray(torch.ones(3)).tolist() == [1, 1, 1]


def test_a_copy_that_is_asked_for_is_one():
    tensor = torch.zeros(3, device=PLACE)
    x = lazyarray.asarray(tensor, copy=True)
    x += 1
    assert tensor.tolist() == [0, 0, 0]
    if not ON_CUDA:
        with pytest.raises(ValueError, match="on the host"):
            lazyarray.asarray(tensor, copy=False)


def test_there_and_back_is_the_same_memory(x):
    tensor = torch.as_tensor(x) if ON_CUDA else lazytorch.as_tensor(x)
    if ON_CUDA:
        assert np.shares_memory(lazyarray.asarray(tensor), x)
        assert np.shares_memory(lazyarray.asarray(tensor[1:]), x)
    with assert_copies(uploads=0, materialisations=0):
        y = lazytorch.call(lambda t: t.T, (x,), {})
    assert np.shares_memory(x, y)
    y[2, 0] = 40
    assert x[0, 2] == 40 and tensor[0, 2] == 40


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("view", [lambda t: t, lambda t: t.T, lambda t: t[1:, ::2], lambda t: t.expand(2, 3, 4)],
                         ids=["whole", "T", "strided", "expanded"])
def test_tensors_of_every_dtype_and_layout(dtype, view):
    tensor = view(torch.from_numpy(values(dtype)).to(PLACE))
    x = lazyarray.asarray(tensor)
    assert (x.dtype, x.shape, x.tolist()) == (dtype, tuple(tensor.shape), tensor.tolist())
    assert lazyarray.asnumpy(lazyarray.asdevice(tensor)).tolist() == tensor.tolist()


def complex_tensor():
    return torch.ones(3, dtype=torch.complex64, device=PLACE)


REFUSED = {
    "requires grad": (lambda: torch.ones(3, device=PLACE, requires_grad=True), RuntimeError, r"tensor\.detach\(\)"),
    "parameter": (lambda: torch.nn.Parameter(torch.ones(3, device=PLACE)), RuntimeError, r"tensor\.detach\(\)"),
    "result with a gradient": (lambda: torch.nn.Linear(2, 2).to(PLACE)(torch.ones(2, device=PLACE)), RuntimeError,
                               r"tensor\.detach\(\)"),
    "conjugate bit": (lambda: complex_tensor().conj(), RuntimeError, r"resolve_conj\(\)"),
    "negative bit": (lambda: complex_tensor().conj().imag, RuntimeError, r"resolve_neg\(\)"),
    "bfloat16": (lambda: torch.ones(3, dtype=torch.bfloat16, device=PLACE), TypeError, r"tensor\.float\(\)"),
    "float8": (lambda: torch.ones(3, device=PLACE).to(torch.float8_e4m3fn), TypeError, r"tensor\.float\(\)"),
    "sparse": (lambda: torch.eye(3, device=PLACE).to_sparse(), TypeError, r"tensor\.to_dense\(\)"),
    "sparse rows": (lambda: torch.eye(3, device=PLACE).to_sparse_csr(), TypeError, r"tensor\.to_dense\(\)"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.quint8), TypeError, r"dequantize\(\)"),
    "meta": (lambda: torch.ones(3, device="meta"), TypeError, "meta device"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]), TypeError, "to_padded_tensor"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("taker", [lazyarray.asarray, lazyarray.asdevice, lazyarray.LazyNdarray],
                         ids=["asarray", "asdevice", "LazyNdarray"])
def test_tensors_that_no_array_can_be_are_refused_with_the_way_out(case, taker):
    make, error, way_out = REFUSED[case]
    tensor = make()
    with pytest.raises(error, match=way_out):
        taker(tensor)


@pytest.mark.parametrize(("case", "way"), [
    ("requires grad", lambda t: t.detach()), ("conjugate bit", lambda t: t.resolve_conj()),
    ("negative bit", lambda t: t.resolve_neg()), ("bfloat16", lambda t: t.float()), ("sparse", lambda t: t.to_dense()),
    ("sparse rows", lambda t: t.to_dense()), ("quantized", lambda t: t.dequantize()),
])
@pytest.mark.filterwarnings("ignore")
def test_the_way_out_leads_out(case, way):
    tensor = way(REFUSED[case][0]())
    assert lazyarray.asarray(tensor).tolist() == tensor.tolist()


# Functions of torch's.

@pytest.mark.parametrize("function", [
    torch.sin, lambda x: torch.stack([x, x]), lambda x: torch.nn.functional.interpolate(x[None], size=7)[0],
    lambda x: torch.fft.fft(x), lambda x: torch.linalg.svdvals(x), lambda x: torch.where(x > 2, x, 0.0),
    lambda x: torch.nn.ReLU()(x), lambda x: torch.einsum("ij,kj->ik", x, x), lambda x: torch.cumsum(x, 1),
])
def test_a_function_of_lazy_arrays_runs_where_they_are_and_returns_one(function, x):
    expected = function(torch.from_numpy(PLAIN.copy()))
    with assert_copies(uploads=0, materialisations=0):
        found = function(x)
    assert type(found) is lazyarray.LazyNdarray
    np.testing.assert_allclose(np.asarray(found), expected.numpy(), rtol=1e-12)


def test_results_in_containers_and_of_other_kinds(x):
    with assert_copies(uploads=0, materialisations=0):
        found = torch.max(x, 1)
        parts = torch.split(x, 2, dim=1)
        total = torch.sum(x)
        assert torch.is_floating_point(x) is True
    assert (type(found).__name__, found.values.tolist(), found.indices.tolist()) == ("max", [2, 5], [2, 2])
    assert [p.tolist() for p in parts] == [PLAIN[:, :2].tolist(), PLAIN[:, 2:].tolist()]
    assert np.shares_memory(parts[0], x)
    assert lazyarray.is_lazy(total) and isinstance(total, np.float64) and total == 15


def test_a_result_is_fetched_once(x):
    y = torch.sin(x)
    with assert_copies(uploads=0, materialisations=1):
        np.asarray(y)
        np.asarray(y)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_beside_a_tensor_the_result_is_a_tensor(x):
    tensor = torch.ones(2, 3, dtype=torch.float64, device=PLACE)
    with assert_copies(uploads=0, materialisations=int(not ON_CUDA)):   # a CPU tensor is host memory, without a GPU too
        results = [torch.add(tensor, x), tensor + x, x + tensor, x * tensor, tensor @ x.T, tensor > x,
                   torch.cat([x, tensor])]
    assert all(type(r) is torch.Tensor for r in results)
    assert (tensor + x).tolist() == (x + tensor).tolist() == (PLAIN + 1).tolist()
    assert tensor[x > 4].tolist() == [1]
    tensor[...] = x
    tensor.add_(x)
    assert tensor.tolist() == (2 * PLAIN).tolist()


@pytest.mark.parametrize("index", [
    lambda a: a, lambda a: a > -1, lambda a: (a, a), lambda a: a[None], lambda a: (slice(None), a), lambda a: [a, a],
    lambda a: (a[0], a), lambda a: a[1], lambda a: (..., a), lambda a: (a[:1], None, a[1])])
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")     # torch thinks of it, and then doesn't do it
def test_a_lazy_index_is_one_index(index):
    tensor = torch.arange(8, device=PLACE).reshape(2, 2, 2)
    places = np.array([0, 1])
    expected, found = tensor[index(places)], tensor[index(lazyarray.asarray(places))]
    assert found.tolist() == expected.tolist()
    tensor[index(lazyarray.asarray(places))] = 9
    assert (tensor[index(places)] == 9).all()


@pytest.mark.parametrize("value", [np.float32(1), np.int64(2), np.bool_(True), np.complex128(3)])
def test_a_lazy_scalar_is_no_sequence_to_c_code(value):
    scalar = lazyarray.asarray(np.array([value]))[0]
    assert lazyarray.is_lazy(scalar)
    assert sequence_slot.is_sequence(scalar) is sequence_slot.is_sequence(value) is False
    assert sequence_slot.is_sequence(lazyarray.asarray(np.ones(2)))
    assert scalar[()] == value and scalar[...].shape == ()


def test_beside_a_tensor_on_the_host_the_work_is_done_there(x):
    tensor = torch.ones(2, 3, dtype=torch.float64)
    with assert_copies(uploads=0, materialisations=1):
        results = [tensor + x, x * tensor, torch.add(tensor, x[0]), tensor @ x.T, torch.where(tensor > 0, x, tensor)]
    assert all(type(r) is torch.Tensor and r.device.type == "cpu" for r in results)
    assert results[0].tolist() == (PLAIN + 1).tolist()
    places = lazyarray.asarray(np.array([0, 1, 1]))
    assert torch.arange(3)[places].tolist() == [0, 1, 1]
    torch.add(tensor, tensor, out=x)
    assert x.tolist() == np.full((2, 3), 2.0).tolist()
    assert torch.add(tensor, x[::-1]).tolist() == torch.add(tensor, np.broadcast_to(x[0], (2, 3))).tolist()
    x = lazyarray.asarray(PLAIN)
    with assert_copies(uploads=0, materialisations=0):      # a number goes with tensors of any place
        found = torch.add(torch.tensor(1.0), x)
    assert found.device.type == PLACE and found.tolist() == (PLAIN + 1).tolist()


@pytest.fixture
def two_devices():
    device = lazyarray.device()
    with device.with_count(2) if device.name == "simulated" else contextlib.nullcontext():
        if lazyarray.device().count < 2:
            pytest.skip("one GPU here")
        yield


@pytest.mark.together
def test_what_torch_modifies_on_another_gpu_is_modified(two_devices):
    def on(number, values):
        with lazyarray.device(number):
            return lazyarray.asarray(values)

    values, mean, var = np.random.default_rng(0).random((8, 3)), np.zeros(3), np.ones(3)
    x, lazy_mean, lazy_var, weight = on(0, values), on(1, mean.copy()), on(1, var.copy()), on(1, np.full(3, 2.0))
    plain = [torch.from_numpy(a) for a in (values, mean, var, np.full(3, 2.0))]
    wanted = torch.nn.functional.batch_norm(*plain, None, True)
    with assert_copies(0, 0):
        found = torch.nn.functional.batch_norm(x, lazy_mean, lazy_var, weight, None, True)
    assert np.allclose(found, wanted) and np.allclose(lazy_mean, mean) and np.allclose(lazy_var, var)
    assert mean.any() and (weight == 2).all() and lazyarray.where(lazy_mean).device.endswith(":1")
    total = torch.add(on(0, np.ones(3)), on(1, np.ones(3)), out=weight)
    assert total is weight and (weight == 2).all() and lazyarray.where(weight).device.endswith(":1")
    found = torch.add(x, weight), torch.stack([on(1, np.ones(3)), on(0, mean)])
    assert [lazyarray.where(a).device[-1] for a in found] == ["0", "1"]
    lazy_mean.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        torch.nn.functional.batch_norm(x, lazy_mean, lazy_var, weight, None, True)


def test_gradients_flow_past_a_lazy_array(x):
    weight = torch.ones(3, dtype=torch.float64, device=PLACE, requires_grad=True)
    found = torch.nn.functional.linear(x, weight[None])
    found.sum().backward()
    assert weight.grad.tolist() == PLAIN.sum(0).tolist()
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        lazyarray.asarray(found)


def test_a_lazy_scalar_is_a_number(x):
    tensor = torch.ones(2, device=PLACE)
    assert torch.add(tensor, x.max()).tolist() == (tensor + x.max()).tolist() == [6, 6]
    assert torch.add(tensor, x.max()).dtype == torch.add(tensor, PLAIN.max()).dtype
    assert torch.full((2,), x.max()).tolist() == [5, 5]
    assert torch.clamp(tensor, min=x.max()).tolist() == [5, 5]
    for scalar, numpys in ((x.max(), PLAIN.max()), (x.argmax(), PLAIN.argmax()), ((x > 1).any(), np.True_)):
        for make in (torch.tensor, torch.as_tensor):
            made = make(scalar)
            assert (made.dtype, made.device.type, made.item()) == (make(numpys).dtype, "cpu", numpys)


def test_writes_of_torch_land_in_the_array(x):
    with assert_copies(uploads=0, materialisations=0):
        assert torch.relu_(x) is x
        assert torch.mul(x, 2, out=x) is x
    assert x.tolist() == (2 * PLAIN).tolist() == np.asarray(x).tolist()
    alias = np.asarray(x)
    torch.mul(x, 2, out=x)
    assert x[1, 2] == alias[1, 2] == 20
    y = np.zeros_like(x)
    torch.add(torch.ones(2, 3, device=PLACE), x, out=y)
    assert y.tolist() == (4 * PLAIN + 1).tolist()


@pytest.mark.parametrize("write", [lambda x: torch.relu_(x), lambda x: torch.sin(x, out=x),
                                   lambda x: torch.max(x, 0, out=(x, x))])
def test_read_only_arrays_are_not_written(write, x):
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        write(x)
    with pytest.raises(ValueError, match="strides"):
        write(lazyarray.asarray(PLAIN)[::-1])
    with pytest.raises(TypeError, match="scalar"):
        write(lazyarray.asarray(PLAIN).sum())


def test_a_result_that_somebody_else_holds_is_looked_at_each_time(x):
    kept = torch.zeros(2, 3, dtype=torch.float64, device=PLACE)
    found = lazytorch.call(lambda t: kept, (x,), {})
    part = lazytorch.call(lambda t: kept[1], (x,), {})
    assert found.tolist() == np.zeros((2, 3)).tolist()
    kept.fill_(3)
    assert np.asarray(found).tolist() == np.full((2, 3), 3.0).tolist()
    assert np.asarray(part).tolist() == [3, 3, 3]
    scalar = lazytorch.call(lambda t: kept.sum(), (x,), {})
    kept.fill_(4)
    assert scalar == 18


def test_a_result_that_no_array_can_be_stays_a_tensor(x):
    found = lazytorch.call(lambda t: {"half": t.bfloat16(), "double": t * 2, "name": "a"}, (x,), {})
    assert type(found["half"]) is torch.Tensor and lazyarray.is_lazy(found["double"]) and found["name"] == "a"


def test_where_lazy_arrays_are_switched_off_results_are_numpys(x):
    with lazyarray.options(lazy=False):
        found = torch.max(x, 1)
        assert torch.relu_(x) is x
    assert [type(part) for part in found] == [np.ndarray] * 2 and found.values.tolist() == [2, 5]


def test_errors_are_torchs_own(x):
    with pytest.raises(RuntimeError, match="size of tensor"):
        torch.add(x, lazyarray.asarray(np.ones(7)))
    with pytest.raises(TypeError, match="must be Tensor"):
        torch.add(torch.ones(2), PLAIN)


def test_a_released_tensor_leaves_no_trace(x):
    tensor = lazytorch.as_tensor(x)
    tensor += 1
    del tensor
    assert x.tolist() == (PLAIN + 1).tolist()
    with assert_copies(uploads=0, materialisations=0):
        np.asarray(x)


# Streams.

def test_work_is_ordered_across_streams():
    device = lazyarray.device()
    plain = np.arange(1 << 16, dtype="f4")
    x = lazyarray.asarray(plain)
    with device.new_stream():
        for _ in range(50):
            x = x + 1
        tensor = torch.as_tensor(x) if ON_CUDA else lazytorch.as_tensor(x)
        total = tensor.double().sum().item()
    assert total == float((plain.astype(float) + 50).sum())


@on_cuda
def test_work_on_a_stream_of_torch_is_ordered():
    plain = np.arange(1 << 20, dtype="f4")
    for _ in range(5):
        x = lazyarray.asarray(plain)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            tensor = torch.from_dlpack(x)
            for _ in range(50):
                tensor = tensor * 1.0 + 1
            y = lazyarray.asarray(tensor)
        assert np.array_equal(np.asarray(y), plain + 50)


@on_cuda
def test_both_sides_wait_for_each_other_for_as_long_as_they_share():
    plain = np.zeros(1 << 22, "f4")
    x = lazyarray.asarray(plain)
    tensor = torch.as_tensor(x)
    with torch.cuda.stream(torch.cuda.Stream()):
        for count in range(1, 6):
            for _ in range(20):
                tensor.add_(1)
            seen = x * 2
            x += 1
            assert tensor.sum().item() == 21 * count * len(plain)
            assert np.asarray(seen).min() == 2 * (21 * count - 1)


# DataLoader.

class Pictures(torch.utils.data.Dataset):
    """Lazy pictures and their numbers."""

    def __init__(self, count=6):
        self.pictures = [lazyarray.asarray(np.full((2, 3), i, "f4")) for i in range(count)]
        for picture in self.pictures:
            np.asarray(picture)     # on the host too: a forked worker can't reach the device

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = self.pictures[index]
        return {"picture": picture, "brightest": picture.max(), "index": index}


def test_a_loader_makes_batches_of_lazy_arrays_where_they_are():
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=3)
    with assert_copies(uploads=0, materialisations=6):      # the numbers of the six scalars
        batches = list(loader)
    assert [type(b["picture"]) for b in batches] == [torch.Tensor] * 2
    assert batches[0]["picture"].device.type == PLACE
    assert batches[1]["picture"][:, 0, 0].tolist() == [3, 4, 5]
    assert batches[1]["index"].tolist() == [3, 4, 5]
    assert batches[1]["brightest"].dtype == torch.as_tensor([np.float32(1)]).dtype
    expected = torch.utils.data.default_collate([np.ones(2), np.ones(2)])
    assert torch.equal(torch.utils.data.default_collate([lazyarray.asarray(np.ones(2))] * 2).cpu(), expected)


def loaded(dataset, **options):
    """What two workers load: a batch of three pictures each."""
    # So long does torch wait for each worker of a loader that failed, once it is collected; 5 s otherwise.
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.2
    return list(torch.utils.data.DataLoader(dataset, batch_size=3, num_workers=2, **options))


@pytest.mark.filterwarnings("ignore")
def test_forked_workers_make_batches_of_what_is_on_the_host():
    batches = loaded(Pictures(), multiprocessing_context="fork")
    assert [b["picture"].device.type for b in batches] == ["cpu"] * 2
    assert batches[1]["picture"][:, 0, 0].tolist() == batches[1]["brightest"].tolist() == [3, 4, 5]


@pytest.mark.filterwarnings("ignore")
def test_forked_workers_cannot_reach_the_device_and_say_what_to_do():
    pictures = Pictures()
    pictures.pictures = [picture + 1 for picture in pictures.pictures]
    with pytest.raises(lazyarray.DeviceUnavailableError, match="spawning"):
        loaded(pictures, multiprocessing_context="fork")


@pytest.mark.skipif(os.environ.get("LAZYARRAY_NIGHTLY") != "1", reason="two new processes import torch")
def test_spawned_workers_get_what_is_on_the_device():
    pictures = Pictures()
    pictures.pictures = [picture + 1 for picture in pictures.pictures]
    batches = loaded(pictures, multiprocessing_context="spawn")
    assert batches[1]["picture"][:, 0, 0].tolist() == [4, 5, 6]
    assert [b["picture"].device.type for b in batches] == ["cpu"] * 2


def test_lazy_and_host_arrays_make_one_batch():
    mixed = [lazyarray.asarray(np.ones(2, "f4")), np.zeros(2, "f4")]
    assert torch.utils.data.default_collate(mixed).tolist() == [[1, 1], [0, 0]]
    with pytest.raises(RuntimeError, match="equal size"):
        torch.utils.data.default_collate([lazyarray.asarray(np.ones(2)), lazyarray.asarray(np.ones(3))])


# The example.

def test_resizing_two_ways_from_one_lazy_picture(tmp_path, monkeypatch, capsys):
    from example_runs import ROOT, run

    pytest.importorskip("skimage")
    text = run(ROOT / "examples" / "resize.py", tmp_path, "--side", "128", "--rounds", "1", "--factors", "2")
    assert "\n1 upload (" in text and ", 1 materialisation (" in text and "fallback" not in text
    rows = [line.split() for line in text.splitlines() if line.startswith("   2.0 ")]
    assert [row[1] for row in rows] == ["nearest", "linear", "cubic"]
    assert all(float(row[-1]) < 0.01 for row in rows)      # the two ways mean the same
    assert all(row[4].strip(",") in ("interpolate", "zoom") for row in rows)
    assert (tmp_path / "resize.png").stat().st_size > 1e4
    monkeypatch.setattr(sys, "argv", ["resize.py", "--help"])
    with pytest.raises(SystemExit):     # in this process: a new one would import torch once more
        runpy.run_path(str(ROOT / "examples" / "resize.py"), run_name="__main__")
    assert "--side" in capsys.readouterr().out


def test_both_ways_of_resizing_move_nothing():
    from example_runs import ROOT

    pytest.importorskip("skimage")
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.resize import example
    finally:
        sys.path.remove(str(ROOT))
    picture = lazyarray.asarray(np.random.default_rng(0).random((32, 48), dtype=np.float32))
    with assert_copies(uploads=0, fallbacks=0, materialisations=6):     # a mean of a few bytes for each row
        rows = example().compare(picture, [0.5, 2.0], 1)
    assert [row["result"] for row in rows[::3]] == [[16, 24], [64, 96]]
