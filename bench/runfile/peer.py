"""What a Python program does with the arrays of a run: one dataset for each unknown, the
same shapes, chunks and order as the files of Fieldstone have.

It reads questions from its input, {"Do": ..., "Path": ...}, and answers each with a line.
"""

import json
import os
import sys
import time

import h5py
import numpy as np

job = json.loads(sys.argv[1])
x, y, z = job["Cells"]
states, names = job["States"], job["Unknowns"]
shapes = [(z, y, x), (z, x * y), (z, y, x)]


def number(unknown, state):
    return np.arange(x * y * z, dtype="f8") + (unknown + 1) * 2.0**40 + state * 2.0**30


# The numbers of each state, as a time loop has them: one vector, and the field.
vectors = [np.concatenate([number(0, k), number(1, k)]) for k in range(states)]
fields = [number(2, k).reshape(shapes[2]) for k in range(states)]
into = np.empty(shapes[2])


def write(path):
    n = x * y * z
    start = time.perf_counter()
    with h5py.File(path, "w") as f:
        f["time"] = np.arange(states, dtype="f8")
        for u in range(2):
            d = f.create_dataset("unknowns/" + names[u], (states,) + shapes[u], "<f8")
            for k in range(states):
                d[k] = vectors[k][u * n : (u + 1) * n].reshape(shapes[u])
        d = f.create_dataset("unknowns/" + names[2], (states,) + shapes[2], "<f8", chunks=(1,) + shapes[2], maxshape=(None,) + shapes[2])
        for k in range(states):
            d[k] = fields[k]
        f.flush()
        os.fsync(f.id.get_vfd_handle())
    return time.perf_counter() - start


def read(path):
    start = time.perf_counter()
    with h5py.File(path, "r") as f:
        got = [f["unknowns/" + names[u]][:] for u in range(2)]
    seconds = time.perf_counter() - start
    for u in range(2):
        for k in range(states):
            assert np.array_equal(got[u][k].ravel(), number(u, k)), (path, names[u], k)
    return seconds


def read_fields(path):
    seconds = 0.0
    with h5py.File(path, "r") as f:
        for k in range(states):
            into[:] = np.nan
            start = time.perf_counter()
            f["unknowns/" + names[2]].read_direct(into, np.s_[k])
            seconds += time.perf_counter() - start
            assert np.array_equal(into.ravel(), number(2, k)), (path, names[2], k)
    return seconds


def check(path):
    with h5py.File(path, "r") as f:
        for u, name in enumerate(names):
            d = f["unknowns/" + name]
            assert d.shape == (states,) + shapes[u] and d.dtype == "<f8", (path, name, d)
            for k in range(states):
                assert np.array_equal(d[k].ravel(), number(u, k)), (path, name, k)
    return 0.0


does = {"write run": write, "read run": read, "read run field": read_fields, "check": check}
for line in sys.stdin:
    question = json.loads(line)
    try:
        answer = {"Seconds": does[question["Do"]](question["Path"])}
    except Exception as error:
        answer = {"Error": "h5py: %r" % error}
    print(json.dumps(answer), flush=True)
