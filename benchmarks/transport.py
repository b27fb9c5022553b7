"""Time and memory of a graph and a cascade on it: `python -m benchmarks.transport [NODES ...]`.

A standard Gaussian field, m_BA = 2; each number of nodes in a process of its own, whose largest memory it is. Graphs
are made, not read. The yardstick is one pass over memory at random: 4 N reads and additions at drawn
places, which is what the adjacency alone would cost if each of its entries were touched once.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from toydepth.transport import make_graph, run_cascade

DEFAULT = (1_000_000, 10_000_000)


def measure(num_nodes: int) -> dict[str, float]:
    """Returns seconds of each part, the largest memory in GB, and what the cascade did."""
    generator = np.random.default_rng(0)
    field = generator.standard_normal(num_nodes)
    start = time.perf_counter()
    graph = make_graph(num_nodes)
    made = time.perf_counter()
    cascade = run_cascade(graph, field)
    done = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kB on Linux
    del graph
    places = generator.integers(0, num_nodes, 2**20)
    begun = time.perf_counter()
    np.add.at(field, places, field[places])
    random_pass = (time.perf_counter() - begun) * 4 * num_nodes / len(places)
    return {
        "N": num_nodes,
        "graph s": made - start,
        "cascade s": done - made,
        "peak GB": memory,
        "random pass s": random_pass,
        "size / N": cascade.size / num_nodes,
        "duration": cascade.duration,
        "conservation": cascade.conservation_error,
    }


def main() -> int:
    """Prints a row a number of nodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", type=float, nargs="*", default=DEFAULT, help="numbers of nodes, such as 1e6 1e7")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(int(given.nodes[0]))))
        return 0
    for place, num_nodes in enumerate(map(int, given.nodes)):
        command = [sys.executable, "-m", "benchmarks.transport", "--one", str(num_nodes)]
        row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        if not place:
            print(" ".join(f"{name:>13}" for name in row))
        print(" ".join(f"{value:13.4g}" for value in row.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
