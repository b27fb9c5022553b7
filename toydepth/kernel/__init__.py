"""Layers of the toy network in C++, for CPU: compiled on this machine, called by XLA, checked against `net`'s own."""

from toydepth.kernel.build import why_not
from toydepth.kernel.layers import Weights, run_layers, run_tied

__all__ = ["Weights", "run_layers", "run_tied", "why_not"]
