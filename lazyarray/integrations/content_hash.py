"""A digest of an array's bytes, computed where they are.

Caches (Dask's names of tasks, say) need a key that changes with the content. Hashing on the host would copy all of the
array there; on the device it costs a few passes over memory, and 16 bytes are fetched for each 64 KiB. The same bytes
have the same digest on either side, in every process.

Each block of 32-bit words w is hashed to 4 numbers, the upper halves of ``k[0] + sum(k[i] * w[i - 1])`` modulo 2**64
for 4 sets of keys k: the multilinear hash, for which two different blocks agree in one of them in 1 of 2**32 choices of
keys. (Sums of 64-bit words will not do: to change the sign of two float64 adds 2**63 twice, whatever the keys.)
"""
from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np

from ..storage import handles, transfer
from ..storage.storage import Storage

_WORDS = 1 << 14            # of a block
_SUMS = 4
# Bytes that are hashed at once: the products take eight times as much, and should fit into the host's caches.
_ON_DEVICE, _ON_HOST = 16 << 20, 1 << 20
_u64 = np.uint64


def digest(x: Any) -> str:
    """32 hexadecimal digits that depend on the values of a lazy array, its bytes in C order, and on nothing else.

    Parameters
    ----------
    x : LazyNdarray
        Of a dtype without references (objects, strings of variable length).

    Raises
    ------
    TypeError
        The dtype has references: what they refer to is not in the array's bytes.
    """
    meta = handles.meta_of(x)
    if meta.dtype.hasobject or meta.dtype.kind == "T":
        raise TypeError(f"the bytes of {meta.dtype} are references")
    if meta.size == 0:
        return _hexadecimal(np.empty(0, np.uint32), 0)
    storage = x._self_storage
    if type(storage) is not Storage or storage.state == "host" or storage.device.usable() is not None:
        host = np.ascontiguousarray(handles.host_of(x, "content hash"))
        return _hexadecimal(_sums(np, host.reshape(-1).view(np.uint8), _ON_HOST), host.nbytes)
    device = storage.device
    with storage.place():
        array = device.contiguous(handles.device_of(x, "content hash"))
        data = device.view(array, (array.nbytes,), np.dtype(np.uint8), (1,), 0)
        sums = _sums(device.xp, data, _ON_DEVICE)
        return _hexadecimal(transfer.to_host(device, sums, "content hash", "synchronise"), array.nbytes)


def _hexadecimal(sums: np.ndarray, nbytes: int) -> str:
    hashed = hashlib.blake2b(nbytes.to_bytes(8, "little"), digest_size=16)
    hashed.update(np.ascontiguousarray(sums))
    return hashed.hexdigest()


def _sums(xp: Any, data: Any, at_once: int) -> Any:
    """The hashes of all blocks of flat bytes, uint32; the last block is filled with zeros."""
    size = _WORDS * 4
    whole = data.size // size * size
    keys = _host_keys() if xp is np else _keys(xp)
    found = []
    for start in range(0, whole, at_once):
        piece = data[start:min(start + at_once, whole)]
        found.append(_of_blocks(piece.view(np.uint32).reshape(-1, _WORDS), keys))
    if whole < data.size:
        last = xp.zeros((data.size - whole + 3) // 4 * 4, np.uint8)
        last[:data.size - whole] = data[whole:]
        found.append(_of_blocks(last.view(np.uint32).reshape(1, -1), keys))
    return found[0] if len(found) == 1 else xp.concatenate(found)


def _of_blocks(words: Any, keys: Any) -> Any:
    products = words.astype(_u64)[:, None, :] * keys[:, 1:words.shape[1] + 1]
    sums = products.sum(axis=2, dtype=_u64) + keys[:, 0]
    return (sums >> _u64(32)).astype(np.uint32)


@functools.cache
def _host_keys() -> np.ndarray:
    return _keys(np)


def _keys(xp: Any) -> Any:
    """`_SUMS` rows of 64-bit keys, made where they are used: a counter through an invertible mixing of its bits."""
    z = (xp.arange(_SUMS * (_WORDS + 1), dtype=_u64) + _u64(1)) * _u64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> _u64(30))) * _u64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _u64(27))) * _u64(0x94D049BB133111EB)
    return (z ^ (z >> _u64(31))).reshape(_SUMS, _WORDS + 1)
