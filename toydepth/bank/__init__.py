"""Many students (arms) trained at once against the teachers of their replicates, in one jit-compiled loop.

    streams      named random streams from one seed
    arms         which students there are, and how they are stacked
    tiling       how much is worked on at a time, by rule
    devices      which devices, how replicates and batch lie on them, and what runs the layers
    measure      devices, tiling and kernel by a short measurement; remember keeps it
    share        what one device has of arms, teachers and batch
    compiler     options of XLA
    flops        operations that a step needs
    losses       kl and mse, per example
    optimise     learning rates, schedules, optimisers by name
    labels       what tells runs and arms apart in tables
    bank         teachers, students, and the two compiled programs: advance and evaluate
    gradients    snapshots of every arm's gradient
    noise        the float32 noise floor of a loss
    loop         chunks, evaluations, checkpoints, interruption
    checkpoint   orbax folders

Arms share every batch; the teacher of a replicate runs once a batch, whatever the number of arms.
"""

from toydepth.bank.arms import Arm, make_arms
from toydepth.bank.bank import Bank, make_bank
from toydepth.bank.devices import Layout, prepare_devices
from toydepth.bank.loop import Outcome, train
from toydepth.bank.measure import choose_layout

__all__ = ["Arm", "Bank", "Layout", "Outcome", "choose_layout", "make_arms", "make_bank", "prepare_devices", "train"]
