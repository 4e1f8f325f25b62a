"""Triangular factors of matrices and of stacks of them by cuBLAS and cuSOLVER, and what is solved with them.

CuPy's functions do the same, but a program has to wait for the solution to know whether it is one: here the statuses of
the factors are a result of their own, which is there before anything is solved with them.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors.inspection import Unique
from ..operations import Factors

__all__ = ["Cholesky", "Factorizer"]

#: The longest matrices of a stack that cuBLAS is quick at, one after the other, and the longest one alone: cuSOLVER,
#: which takes one at a time, is quicker at longer ones. The last it takes count by 32 bits.
_LONGEST, _LONGEST_ALONE, _LAST = 256, 32, 1 << 15
#: CUBLAS_FILL_MODE_UPPER.
_UPPER = 1
#: Tables of addresses and sizes of workspaces that are remembered, and how long the tables may be. Programs get the
#: same memory again and again.
_MOST, _MOST_ADDRESSES = 256, 1 << 13


class Factorizer(Unique):
    """Factors on the current device and stream.

    Parameters
    ----------
    cupy : module
    load, load_solver : callable
        Give CuPy's modules of cuBLAS and of cuSOLVER, which are loaded with the first factors.
    stream : callable
        Gives the current stream.
    """

    def __init__(self, cupy: Any, load: Callable[[], Any], load_solver: Callable[[], Any],
                 stream: Callable[[], Any]) -> None:
        self.cupy, self.load, self.handle = cupy, load, cupy.cuda.device.get_cublas_handle
        self.load_solver, self.handle_of_solver = load_solver, cupy.cuda.device.get_cusolver_handle
        self._stream = stream
        self._tables: dict[Any, Any] = {}
        self._workspaces: dict[tuple[int, str, int], int] = {}

    def __call__(self, a: Any) -> Factors | None:
        """`Device.factors`."""
        n = a.shape[-1]
        if n <= (_LONGEST if a.ndim > 2 else _LONGEST_ALONE):
            return _OfStack(self, a)
        return _OfOne(self, a) if a.ndim == 2 and n < _LAST else None

    def triangular(self, a: Any) -> Factors | None:
        """`Device.triangular`."""
        return _Triangle(self, a)

    @functools.cached_property
    def copy(self) -> Any:
        """A kernel that copies matrices, and sets the status of one to 1 if an element is NaN: cuBLAS and cuSOLVER may
        pass it over and give finite numbers (CUDA 13.2).
        """
        return self.cupy.ElementwiseKernel("T x, int64 elements", "T y, raw int32 statuses",
                                           "y = x; if (x != x) statuses[i / elements] = 1;", "lazyarray_copy_matrices")

    def workspace(self, matrix: Any, letter: str) -> Any:
        """An array of as many elements as cuSOLVER needs to factorize a matrix."""
        n, handle = len(matrix), self.handle_of_solver()     # that of the current device
        size = self._workspaces.get((handle, letter, n))
        if size is None:
            if len(self._workspaces) >= _MOST:
                self._workspaces.clear()
            size = self._workspaces[handle, letter, n] = getattr(self.load_solver(), f"{letter}getrf_bufferSize")(
                handle, n, n, matrix.data.ptr, n)
        return self.cupy.ndarray((size,), matrix.dtype)

    def addresses(self, stack: Any) -> Any:
        """A device array of the addresses of the arrays of a C-contiguous stack.

        It is written on the current stream, and kept for that stream.
        """
        first, step, count = stack.data.ptr, stack.strides[0], stack.shape[0]
        key = self._stream(), first, step, count
        table = self._tables.get(key)
        if table is None:
            table = self.cupy.arange(first, first + step * count, step, dtype=np.dtype(np.uintp))
            if count <= _MOST_ADDRESSES:
                if len(self._tables) >= _MOST:
                    self._tables.clear()
                self._tables[key] = table
        return table


class _Factors(Factors):
    """LU factors with the rows exchanged: `_matrices`, a stack of them, and `_pivots`, the rows that each was exchanged
    with, counted from 1, of an array of the shape `_shape`. `statuses` are the library's, and then those of NaN.
    """

    _owner: Factorizer
    _shape: tuple[int, ...]
    _matrices: Any
    _pivots: Any

    def determinants(self) -> tuple[Any, Any]:
        xp = self._owner.cupy
        diagonal = self._matrices.diagonal(0, 1, 2)
        size = xp.abs(diagonal)
        one = diagonal.dtype.type(1)
        signs = diagonal / size if diagonal.dtype.kind == "c" else xp.where(diagonal < 0, -one, one)    # of NaN 1
        exchanged = self._pivots != xp.arange(1, self._shape[-1] + 1, dtype=np.dtype(np.int32))
        sign = xp.where(exchanged, -signs, signs).prod(axis=1)
        singular = (size == 0).any(axis=1)      # the status says so of NaN, too
        return (xp.where(singular, sign.dtype.type(0), sign).reshape(self._shape[:-2]),
                xp.where(singular, size.dtype.type(-np.inf), xp.log(size).sum(axis=1)).reshape(self._shape[:-2]))


class _OfStack(_Factors):
    """LU factors of a stack of short matrices, by cuBLAS.

    The rows of a matrix lie together in memory. The library takes them for columns, so what it factorizes is the
    transposed matrix: its inverse is the inverse of the matrix, transposed, and its determinant the same.
    """

    def __init__(self, owner: Factorizer, a: Any) -> None:
        n, xp = a.shape[-1], owner.cupy
        self._owner, self._shape, self._letter = owner, a.shape, "z" if a.dtype.kind == "c" else "d"
        count = math.prod(a.shape[:-2])
        self._matrices = xp.ndarray((count, n, n), a.dtype)
        self._pivots = xp.ndarray((count, n), np.int32)
        self.statuses = xp.ndarray((2, count), np.int32)
        self.statuses.data.memset_async(0, 8 * count)
        owner.copy(a.reshape(count, n, n), n * n, self._matrices, self.statuses[1])
        self._table = owner.addresses(self._matrices)
        getattr(owner.load(), f"{self._letter}getrfBatched")(
            owner.handle(), n, self._table.data.ptr, n, self._pivots.data.ptr, self.statuses.data.ptr, count)

    def solution(self, b: Any, turned: bool = False) -> Any:
        cublas, owner = self._owner.load(), self._owner
        how = cublas.CUBLAS_OP_N if turned else cublas.CUBLAS_OP_T
        count, n = self._pivots.shape
        columns = b.shape[-1]
        x = b.reshape(count, n, columns).swapaxes(1, 2).copy(order="C")
        table = owner.addresses(x)
        status = np.zeros(1, np.int32)      # of the arguments alone
        getattr(cublas, f"{self._letter}getrsBatched")(
            owner.handle(), how, n, columns, self._table.data.ptr, n, self._pivots.data.ptr,
            table.data.ptr, n, status.ctypes.data, count)
        if status[0]:
            raise ValueError(f"argument {-status[0]} of getrsBatched is wrong")
        return x.swapaxes(1, 2).reshape(b.shape)

    def inverse(self) -> Any:
        owner, (count, n) = self._owner, self._pivots.shape
        x = owner.cupy.ndarray((count, n, n), self._matrices.dtype)
        table = owner.addresses(x)
        ignored = owner.cupy.ndarray((count,), np.int32)        # the same as of the factors
        getattr(owner.load(), f"{self._letter}getriBatched")(
            owner.handle(), n, self._table.data.ptr, n, self._pivots.data.ptr, table.data.ptr, n, ignored.data.ptr,
            count)
        return x.reshape(self._shape)


class _OfOne(_Factors):
    """LU factors of one matrix, by cuSOLVER, which takes it by columns: it solves with those of the matrix itself in
    less time than with those of the transposed one (n = 150: 65 and 79 us, 630: 184 and 213; H200, CUDA 13).
    """

    def __init__(self, owner: Factorizer, a: Any) -> None:
        n, xp = a.shape[-1], owner.cupy
        self._owner, self._shape, self._letter = owner, a.shape, "z" if a.dtype.kind == "c" else "d"
        self._columns = xp.ndarray((n, n), a.dtype, order="F")
        # Statuses, one that is of the arguments alone, and from the fifth on the rows that were exchanged.
        self._integers = xp.ndarray((n + 4,), np.int32)
        self._integers.data.memset_async(0, 16)
        self.statuses = self._integers[:2]
        owner.copy(a, n * n, self._columns, self.statuses[1:])
        self._place, integers = self._columns.data.ptr, self._integers.data.ptr
        workspace = owner.workspace(self._columns, self._letter)
        getattr(owner.load_solver(), f"{self._letter}getrf")(
            owner.handle_of_solver(), n, n, self._place, n, workspace.data.ptr, integers + 16, integers)

    @property
    def _matrices(self) -> Any:     # type: ignore[override]
        return self._columns[None]

    @property
    def _pivots(self) -> Any:       # type: ignore[override]
        return self._integers[None, 4:]

    def solution(self, b: Any, turned: bool = False) -> Any:
        cublas = self._owner.load()
        how = cublas.CUBLAS_OP_T if turned else cublas.CUBLAS_OP_N
        return self._solved(b.copy(order="F"), how)

    def inverse(self) -> Any:
        # That of the transposed matrix, by columns.
        return self._solved(self._owner.cupy.eye(self._shape[0], dtype=self._columns.dtype).T,
                            self._owner.load().CUBLAS_OP_T).T

    def _solved(self, x: Any, how: int) -> Any:
        n, integers = self._shape[0], self._integers.data.ptr
        getattr(self._owner.load_solver(), f"{self._letter}getrs")(
            self._owner.handle_of_solver(), how, n, x.shape[1], self._place, n, integers + 16, x.data.ptr, n,
            integers + 8)
        return x


class _Triangle(Factors):
    """One lower triangle, by cuBLAS, which takes the rows for the columns of an upper one."""

    def __init__(self, owner: Factorizer, a: Any) -> None:
        self._owner, self._matrix, self._letter = owner, a.copy(order="C"), "z" if a.dtype.kind == "c" else "d"
        self.statuses = None

    def solution(self, b: Any, turned: bool = False) -> Any:
        owner, cublas, n = self._owner, self._owner.load(), len(self._matrix)
        x, one = b.swapaxes(0, 1).copy(order="C"), np.ones(1, self._matrix.dtype)
        getattr(cublas, f"{self._letter}trsm")(
            owner.handle(), cublas.CUBLAS_SIDE_LEFT, _UPPER, cublas.CUBLAS_OP_N if turned else cublas.CUBLAS_OP_T,
            cublas.CUBLAS_DIAG_NON_UNIT, n, len(x), one.ctypes.data, self._matrix.data.ptr, n, x.data.ptr, n)
        return x.swapaxes(0, 1)

    def inverse(self) -> Any:
        return self.solution(self._owner.cupy.eye(len(self._matrix), dtype=self._matrix.dtype))

    def determinants(self) -> tuple[Any, Any]:
        xp, diagonal = self._owner.cupy, self._matrix.diagonal()
        size = xp.abs(diagonal)
        return (diagonal / size).prod(), xp.log(size).sum()


class Cholesky(Unique):
    """`Device.cholesky`. CuPy's function waits for its statuses, and does not say whether the factors are finite: two
    waits, where this takes one.

    Parameters
    ----------
    factorizer : Factorizer
        Knows the libraries.
    """

    def __init__(self, factorizer: Factorizer) -> None:
        self._factorizer, self._cupy = factorizer, factorizer.cupy
        self._lower = functools.cache(self._lower_of)

    def _lower_of(self, part: str) -> Any:
        """A kernel that clears what lies above the diagonals, and sets the status of a matrix to 1 if an element of its
        diagonal is not finite, or one that was given is NaN. Any element that is not finite makes the diagonal of its
        row so, if cuSOLVER does not pass it over, as it may NaN.
        """
        return self._cupy.ElementwiseKernel("T given, int32 n", "T x, raw int32 statuses", f"""
            const long long row = i / n % n, column = i % n;
            if (column > row) x = T(0);
            else if (given != given || column == row && !isfinite({part})) statuses[i / n / n] = 1;
            """, "lazyarray_lower")

    def __call__(self, a: Any) -> tuple[Any, Any] | None:
        n, owner = a.shape[-1], self._factorizer
        alone = a.ndim == 2 and n > _LONGEST_ALONE
        if n > _LONGEST and not alone or n >= _LAST:
            return None
        count, is_complex = math.prod(a.shape[:-2]), a.dtype.kind == "c"
        cusolver, handle, letter = owner.load_solver(), owner.handle_of_solver(), "z" if is_complex else "d"
        given, statuses = a.reshape(count, n, n), self._cupy.ndarray((count,), np.int32)
        stack = given.copy(order="C")
        # By columns, as cuSOLVER has them, these rows are those of the other triangle.
        if alone:
            size = getattr(cusolver, f"{letter}potrf_bufferSize")(handle, _UPPER, n, stack.data.ptr, n)
            workspace = self._cupy.ndarray((size,), a.dtype)
            getattr(cusolver, f"{letter}potrf")(handle, _UPPER, n, stack.data.ptr, n, workspace.data.ptr, size,
                                                statuses.data.ptr)
        else:
            table = owner.addresses(stack)
            getattr(cusolver, f"{letter}potrfBatched")(handle, _UPPER, n, table.data.ptr, n, statuses.data.ptr, count)
        self._lower("x.real()" if is_complex else "x")(given, n, stack, statuses)
        return stack.reshape(a.shape), statuses
