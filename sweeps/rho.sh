#!/usr/bin/env bash
# Asks: where between an independent and a tied teacher does alpha_ell change? One job a rho, then fit and figures.
# Command: bash sweeps/rho.sh
# Expect: alpha (averages, step 12000, 4 teachers) 1.01 [0.98, 1.04], 1.27 [1.25, 1.29], 1.70 [1.59, 1.81], 1.71 [1.43, 1.99],
# 1.66 [1.43, 1.89], in the order of the rhos; all but the first still moving.
# Took: 81 s on 2 cores of a shared AMD EPYC (Zen 5).
# More keys may follow, e.g. seed=1: its runs lie beside the first ones, and their teachers are fitted together.
set -euo pipefail
export PATH=$PATH:$(cd "$(dirname "$0")/.." && pwd)/.venv/bin  # where make sets up; an active environment goes first
toydepth train -m +experiment=correlated teacher.rho=0,0.5,0.9,0.99,1 tracker=none "$@"
toydepth fit runs/correlated
toydepth figures runs/correlated --folder runs/correlated/figures
