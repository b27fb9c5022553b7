#!/usr/bin/env bash
# Asks: do avalanches in the gradients of students of one depth grow in proportion to their size, do they last longer in
# larger ones, and does that change while they train? Five widths against each of two teachers, then the probe.
# Command: bash sweeps/transport.sh
# More keys may follow, e.g. steps=300: they go to the trainings.
set -euo pipefail
export PATH=$PATH:$(cd "$(dirname "$0")/.." && pwd)/.venv/bin  # where make sets up; an active environment goes first
toydepth train -m +experiment=transport teacher=tied,independent width=4,8,16,32,64 tracker=none "$@"
toydepth transport --runs runs/transport --folder runs/transport/probe
