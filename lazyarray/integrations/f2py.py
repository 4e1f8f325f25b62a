"""Routines of SciPy that f2py has made: known when they are called, so that they copy what they would overwrite."""
from __future__ import annotations

from ..events.callers import watch_routines

register = watch_routines
