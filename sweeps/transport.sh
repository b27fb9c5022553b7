#!/usr/bin/env bash
# Asks: do avalanches in the gradients of students of one depth grow in proportion to their size, do they last longer in
# larger ones, and does that change while they train? Five widths against each of two teachers, then the probe.
# Command: bash sweeps/transport.sh
# Expect: D 0.938 to 0.991, z 0.014 to 0.128, delta -0.137 to -0.072 over 16 steps and both teachers; N2 the same.
# Took: 3 min 6 s on 2 cores of a shared AMD EPYC (Zen 5).
# More keys may follow, e.g. steps=300: they go to the trainings.
set -euo pipefail
export PATH=$PATH:$(cd "$(dirname "$0")/.." && pwd)/.venv/bin  # where make sets up; an active environment goes first
toydepth train -m +experiment=transport teacher=tied,independent width=4,8,16,32,64 tracker=none "$@"
toydepth transport --runs runs/transport --folder runs/transport/probe
