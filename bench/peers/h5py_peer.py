"""What a Python program does: h5py over MPI, one contiguous dataset per field.

    mpirun -n 2 /usr/bin/python3 h5py_peer.py job.json

job.json is a plan.Job; for each of its cases rank 0 prints plan.Line objects of "h5py"
and of "floor", the contiguous write of each rank's share, which relates this job to the
others.
"""

import json
import os
import sys
import time

import numpy as np
from mpi4py import MPI

import h5py


def values(field, first, cells):
    return np.arange(first + 1, first + cells + 1, dtype=np.float64) + (field + 1) * 2.0**40


class Situation:
    def __init__(self, comm, case, folder):
        self.comm, self.case, self.folder = comm, case, folder
        self.size = case["Cells"]
        p, rank = case["Processes"], comm.rank
        at = (rank % p[0], rank // p[0] % p[1], rank // (p[0] * p[1]))
        self.low = [self.size[a] * at[a] // p[a] for a in range(3)]
        self.own = [self.size[a] * (at[a] + 1) // p[a] - self.low[a] for a in range(3)]
        cells = self.size[0] * self.size[1] * self.size[2]
        self.first = cells * rank // comm.size
        self.share = cells * (rank + 1) // comm.size - self.first
        halo = case["Halo"]
        inner = tuple(slice(halo, halo + n) for n in reversed(self.own))
        self.box = tuple(slice(l, l + n) for l, n in zip(reversed(self.low), reversed(self.own)))
        self.fields, self.packed = [], []
        x = np.arange(self.own[0], dtype=np.float64) + self.low[0]
        y = (np.arange(self.own[1], dtype=np.float64) + self.low[1]) * self.size[0]
        z = (np.arange(self.own[2], dtype=np.float64) + self.low[2]) * self.size[0] * self.size[1]
        for f in range(case["Fields"]):
            padded = np.full([n + 2 * halo for n in reversed(self.own)], np.nan)
            padded[inner] = z[:, None, None] + y[None, :, None] + x[None, None, :] + 1 + (f + 1) * 2.0**40
            self.fields.append(padded[inner])
            self.packed.append(values(f, self.first, self.share))
        self.buffer = np.zeros(list(reversed(self.own)))

    def save(self):
        path = os.path.join(self.folder, "all.h5")
        with h5py.File(path, "w", driver="mpio", comm=self.comm, libver="latest") as file:
            self.offsets = []
            for f, cells in enumerate(self.fields):
                data = file.create_dataset(f"f{f}", list(reversed(self.size)), "<f8")
                np.copyto(self.buffer, cells)
                with data.collective:
                    data[self.box] = self.buffer
                self.offsets.append(data.id.get_offset())
            if self.case["Sync"]:
                file.flush()
        self.paths = [path] * len(self.fields)

    def floor(self):
        files = []
        self.paths, self.offsets = [], [0] * len(self.packed)
        for f, cells in enumerate(self.packed):
            path = os.path.join(self.folder, f"f{f}.bin")
            self.paths.append(path)
            fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o666)
            files.append(fd)
            view, at = memoryview(cells).cast("B"), 8 * self.first
            while len(view):
                n = os.pwrite(fd, view, at)
                view, at = view[n:], at + n
        for fd in files:
            if self.case["Sync"]:
                os.fsync(fd)
            os.close(fd)

    def check(self):
        for f, (path, offset) in enumerate(zip(self.paths, self.offsets)):
            with open(path, "rb") as file:
                file.seek(offset + 8 * self.first)
                got = np.fromfile(file, "<f8", self.share)
            if not np.array_equal(got, values(f, self.first, self.share)):
                return f"{path}: field {f} is wrong"
        return ""

    def empty(self):
        self.comm.Barrier()
        if self.comm.rank == 0:
            for name in os.listdir(self.folder):
                os.remove(os.path.join(self.folder, name))
            if self.case["Place"] == "disk":
                fd = os.open(self.folder, os.O_RDONLY)
                os.fsync(fd)
                os.close(fd)
        self.comm.Barrier()

    def timed(self, run):
        start = self.comm.allreduce(time.monotonic() + 0.002, MPI.MAX)
        time.sleep(max(0.0, start - time.monotonic()))
        run()
        return self.comm.allreduce(time.monotonic(), MPI.MAX) - start


def main():
    comm = MPI.COMM_WORLD
    with open(sys.argv[1]) as file:
        job = json.load(file)
    for case in job["Launch"]["Cases"]:
        folder = os.path.join(job["Tmpfs" if case["Place"] == "tmpfs" else "Disk"], "h5py")
        if comm.rank == 0:
            os.makedirs(folder, exist_ok=True)
        comm.Barrier()
        situation = Situation(comm, case, folder)
        turns = [("floor", situation.floor), ("h5py", situation.save)]
        lines = {
            name: {
                "Case": case["Name"],
                "Contestant": name,
                "Bytes": 8 * case["Fields"] * case["Cells"][0] * case["Cells"][1] * case["Cells"][2],
                "Seconds": [],
                "Checked": 0,
            }
            for name, _ in turns
        }
        for repetition in range(case["Repeats"] + 1):
            for name, run in turns if repetition % 2 == 0 else turns[::-1]:
                situation.empty()
                seconds = situation.timed(run)
                wrong = [w for w in comm.allgather(situation.check()) if w]
                if wrong:
                    lines[name]["Error"] = wrong[0]
                lines[name]["Checked"] += 1
                if repetition > 0:
                    lines[name]["Seconds"].append(seconds)
        situation.empty()
        if comm.rank == 0:
            for line in lines.values():
                print(json.dumps(line), flush=True)


main()
