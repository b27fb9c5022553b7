"""The residual network of the toy model: blocks, teachers and students, as flax modules.

Everything works features first, `(width, batch)`: the batch is the long, contiguous axis, which vector units like.
Defined in docs/notation.md; nothing here knows about losses, optimisers or configuration files.
"""

from toydepth.net.branch import branch, plain_branch, rms
from toydepth.net.functional import Functional, Params, functional, parameters
from toydepth.net.residual import KERNELS, Block, LayerStack, MidpointBlock, Mlp, Network, TiedStack, make_block
from toydepth.net.student import make_euler_student, make_student
from toydepth.net.teacher import TEACHER_KINDS, make_head, make_teacher

__all__ = [
    "KERNELS",
    "TEACHER_KINDS",
    "Block",
    "Functional",
    "LayerStack",
    "MidpointBlock",
    "Mlp",
    "Network",
    "Params",
    "TiedStack",
    "branch",
    "functional",
    "make_block",
    "make_euler_student",
    "make_head",
    "make_student",
    "make_teacher",
    "parameters",
    "plain_branch",
    "rms",
]
