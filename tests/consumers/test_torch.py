"""Torch and its DataLoader."""
from __future__ import annotations

import numpy as np

from .records import Library, Refused

torch = Library("torch")


def batches(*arrays, **options):
    """What a DataLoader makes of the items of arrays, and of their numbers."""
    import torch

    class Items(torch.utils.data.Dataset):
        def __len__(self):
            return len(arrays[0])

        def __getitem__(self, index):
            return {"items": tuple(array[index] for array in arrays), "index": index}

    # So long does torch wait for each worker of a loader that failed, once it is collected; 5 s otherwise.
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.2
    loader = torch.utils.data.DataLoader(Items(), batch_size=32, **options)
    return [(batch["items"], batch["index"]) for batch in loader]


@torch("``DataLoader``: batches of lazy arrays", copies="none")
def test_loader(table):
    return batches(table, table[:, ::2])


@torch("``DataLoader``: batches of their elements", copies="each once")
def test_loader_of_elements(classes, x):
    return batches(x, classes)


@torch("``DataLoader`` with forked workers", refused=Refused(
    "DeviceUnavailableError", "spawning", "``multiprocessing_context=\"spawn\"``, or pass ``np.asarray(x)``"))
def test_forked_workers(table, classes):
    return batches(table, classes, num_workers=2, multiprocessing_context="fork")


@torch("``Subset``, ``random_split``, ``TensorDataset`` of ``as_tensor(x)``", copies="in between")
def test_datasets(table):
    import torch
    from torch.utils.data import Subset, TensorDataset, random_split

    parts = random_split(table, [0.5, 0.5], generator=torch.Generator().manual_seed(1))
    return [np.asarray(row) for row in Subset(table, [1, 3, 5])], np.asarray(parts[0][3]), TensorDataset(
        torch.as_tensor(table))[5:9]


@torch("``t[x]``, ``t + x``, ``torch.add(t, x)`` beside a CPU tensor ``t``", copies="each once")
def test_beside_tensors(x, i, b):
    import torch

    t = torch.arange(100.0, dtype=torch.float64)
    return t[i], t[b], t * x, t * x.mean()


@torch("``torch.from_numpy(x)``", refused=Refused("TypeError", "ndarray", "``torch.as_tensor(x)``"))
def test_from_numpy(x):
    import torch

    return torch.from_numpy(x) * 2
