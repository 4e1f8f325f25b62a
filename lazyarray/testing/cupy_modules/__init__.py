"""The modules ``cupy`` and ``cupyx`` for programs that are tested without a GPU: `lazyarray.testing.simulated_cupy`.

The simulated device computes (``lazyarray/devices/simulated``); here are the modules that programs import.
``names.json`` lists the public modules of CuPy and their public names; ``tests/tools/cupy_names.py`` writes it. A name
that CuPy has and the simulated device does not have is a stand-in (``missing.py``), which raises an error when called.
"""
