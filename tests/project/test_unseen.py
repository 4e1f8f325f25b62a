"""Whole programs by somebody who has not read the library give NumPy's results, whatever runs where."""
from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy

PROGRAMS = sorted((Path(__file__).parents[2] / "benchmarks" / "unseen").glob("*.py"))
NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
#: Those that each run sees in all ways; the others in one way by day, under 3.12 and later.
SHORT = frozenset({"audio", "edges", "fdtd", "fits", "lorenz", "mixture", "options", "vortex"})
#: Those that no run by day sees: they take long, or are like one that it sees.
LONG = frozenset({"armik", "attention", "backtest", "bandits", "beamforming", "bitboards", "bundle", "bwt",
                  "calibration", "changepoint", "charlstm", "climate", "cloth", "cluster", "convnet", "credit",
                  "cryoem", "deblur", "demand", "dendrite", "epidemic", "evolve", "ewald", "exoplanet", "fem", "flip",
                  "forest", "gait", "garch", "gauge", "genes", "glacier", "graphs", "gravity", "heston", "hmm",
                  "holography", "hydrology", "insurance", "interior", "inventory", "ising", "jpeg", "kinetics",
                  "knapsack", "kriging", "lasso", "lattice", "ldpc", "lensing", "levelset", "loadflow", "market",
                  "mcmc", "mesh", "migration", "minhash", "molecule", "mortality", "mri", "neutron", "ngrams", "nmr",
                  "opticalflow", "packets", "panel", "pathtrace", "pharmaco", "phasefield", "phylogeny", "pic",
                  "picking", "pipes", "pointcloud", "popgen", "potts", "powder", "quantise", "quantum", "quasigeo",
                  "queueing", "radar", "radiosity", "recommender", "regimes", "rigidbody", "scf", "seamcarve",
                  "segments", "shallow", "sparsegrid", "sph", "sphere", "spiking", "spinchain", "stereo", "stitch",
                  "sudoku", "survival", "svm", "tomography", "topics", "transport", "tsne", "tsp", "unmix", "vae",
                  "viterbi", "volume", "warping", "wildfire", "wordvec"})
#: Chaotic, and with phases that are added up: what differs in the last place grows.
TOLERANCES = {"lorenz": 1e-5, "audio": 1e-5, "vae": 1e-5, "mri": 1e-5}
#: After how many steps a fit gets no better is a matter of the last place: so many more or fewer, but for one of them
#: that goes on at its end.
STEPS = {("fits", "iterations"): 3}


def load(path):
    spec = importlib.util.spec_from_file_location(f"unseen_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("small", [True, False], ids=["small arrays on the host", "all on the device"])
@pytest.mark.parametrize("namespace", ["numpy", "lazyarray.numpy"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
def test_results_are_numpys(path, namespace, small, monkeypatch):
    if not NIGHTLY and path.stem not in SHORT and (
            small or namespace == "numpy" or path.stem in LONG or sys.version_info < (3, 12)):
        pytest.skip("in the nightly profile")
    from lazyarray import _native
    from lazyarray.graph.cost_model import Costs

    module = load(path)
    wanted = module.main(np.array, module.DEFAULT, module.inputs(module.DEFAULT))
    wanted = {name: np.asarray(value) for name, value in wanted.items()}
    if namespace == "lazyarray.numpy":
        monkeypatch.setattr(module, "np", lazyarray.numpy)
    before = _native.recording.small(Costs().small() if small else 0) if _native.recording is not None else 0
    try:
        found = module.main(lazyarray.asarray, module.DEFAULT, module.inputs(module.DEFAULT))
        found = {name: np.asarray(value) for name, value in found.items()}
    finally:
        if _native.recording is not None:
            _native.recording.small(before)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        scale = np.nanmax(np.abs(value), initial=0) or 1
        if (path.stem, name) in STEPS:
            assert (np.abs(found[name] - value) > STEPS[path.stem, name]).sum() <= 1
            continue
        np.testing.assert_allclose(found[name] / scale, value / scale, rtol=0, atol=TOLERANCES.get(path.stem, 1e-6),
                                   err_msg=name)
        assert found[name].dtype == value.dtype and found[name].shape == value.shape, name


def test_there_are_programs():
    assert len(PROGRAMS) == 149 and {path.stem for path in PROGRAMS} > SHORT | LONG
