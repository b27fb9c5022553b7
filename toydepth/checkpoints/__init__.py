"""Fields out of other people's files: checkpoints, gradients, plain vectors. Readers only.

    open_tensors          a file or folder -> names, shapes, kinds; values one tensor at a time
    Selection             which tensors count
    read_field            chosen tensors, laid end to end
    difference            what changed between two checkpoints, tensors matched by name and shape
    checkpoint_fields     several sizes, each with checkpoints by step: differences of neighbours
    neighbours            the same of one model
    pico_fields           learning dynamics of Pico-LM; pico_curves: the losses beside them
    file_fields           npy and npz files

The last ones give a `FieldTable`: steps, and at each step a field of every size, one in memory at a time. Safetensors
and numpy files need numpy alone; torch (extra llm) is imported to read .pt, .pth and .bin.
"""

from toydepth.checkpoints.families import checkpoint_fields, find_checkpoints, neighbours
from toydepth.checkpoints.fields import Field, difference, read_field
from toydepth.checkpoints.files import file_fields
from toydepth.checkpoints.opening import open_tensors
from toydepth.checkpoints.pico import pico_fields
from toydepth.checkpoints.pico_curves import pico_curves
from toydepth.checkpoints.selection import Selection, Skipped
from toydepth.checkpoints.steps import find_step
from toydepth.checkpoints.table import FieldTable
from toydepth.checkpoints.tensors import TensorInfo, Tensors

__all__ = [
    "Field",
    "FieldTable",
    "Selection",
    "Skipped",
    "TensorInfo",
    "Tensors",
    "checkpoint_fields",
    "difference",
    "file_fields",
    "find_checkpoints",
    "find_step",
    "neighbours",
    "open_tensors",
    "pico_curves",
    "pico_fields",
    "read_field",
]
