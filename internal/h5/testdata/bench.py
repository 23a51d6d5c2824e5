"""bench.py DIRECTORY MB COUNT: writes and reads with h5py what the benchmarks do."""
import os
import sys
import time

import h5py
import numpy as np

name = os.path.join(sys.argv[1], "bench.h5")
data = np.arange(int(sys.argv[2]) * (1 << 20) // 8, dtype="f8").reshape(-1, 1024)
into = np.empty_like(data)


def remove():
    if os.path.exists(name):
        os.remove(name)


def timed(what, call, before=None):
    times = []
    for _ in range(int(sys.argv[3])):
        if before:
            before()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(what, "%.0f MB/s" % (data.nbytes / 1e6 / sorted(times)[len(times) // 2]))


def write():
    with h5py.File(name, "w") as f:
        f["x"] = data


def read():
    with h5py.File(name, "r") as f:
        f["x"][:]


def read_into():
    with h5py.File(name, "r") as f:
        f["x"].read_direct(into)


timed("write", write, remove)
timed("read", read)
timed("read into", read_into)
remove()
