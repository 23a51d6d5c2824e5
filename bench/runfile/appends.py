"""The appends of a checkpoint as a Python program makes them: the file is opened, each dataset
of an unknown, the times and the statistics get a row more, and the file is synced and closed.

It reads questions from its input, {"Path": ..., "After": ...}, and answers each with a line: the
processor time of one such round, in a file that has as many rows already.
"""

import json
import os
import sys
import time

import h5py
import numpy as np

scalars, window = int(sys.argv[1]), int(sys.argv[2])
unknowns = ["unknowns/s%04d" % i for i in range(scalars)]
numbers = ["time", "step_length", "error_estimate", "nonlinear_iterations", "linear_iterations", "wall_time",
           "iteration_attempt", "iteration_residual", "iteration_linear"]
names = ["time"] + unknowns + ["solver_statistics/" + n for n in numbers]


def create(path, rows):
    with h5py.File(path, "w") as f:
        for n in names:
            f.create_dataset(n, data=np.zeros(rows), chunks=(512,), maxshape=(None,))
        f.create_dataset("solver_statistics/accepted", data=np.ones(rows, "u1"), chunks=(4096,), maxshape=(None,))
        f.create_dataset("solver_statistics/outcome", data=np.full(rows, b"converged", "S16"), chunks=(256,), maxshape=(None,))


def add(path, row):
    with h5py.File(path, "r+") as f:
        for n in names:
            d = f[n]
            d.resize(row + 1, axis=0)
            d[row] = row
        for n, v in (("accepted", 1), ("outcome", b"converged")):
            d = f["solver_statistics/" + n]
            d.resize(row + 1, axis=0)
            d[row] = v
        f.flush()
    with open(path, "r+b") as f:
        os.fsync(f.fileno())


for line in sys.stdin:
    question = json.loads(line)
    try:
        path, rows = question["Path"], question["After"]
        create(path, rows)
        add(path, rows)
        began = time.process_time()
        for i in range(window):
            add(path, rows + 1 + i)
        answer = {"Milliseconds": (time.process_time() - began) * 1e3 / window}
        os.remove(path)
    except Exception as e:
        answer = {"Error": "%s: %s" % (type(e).__name__, e)}
    print(json.dumps(answer), flush=True)
