"""Compares checksums of run files with those of an implementation of its own, and makes
damaged copies of such files.

    checksums.py check FILE...
    checksums.py damage FILE DIRECTORY
"""

import os
import shutil
import sys

import h5py
import numpy as np

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x9A6C9329AC4BC9B5 if byte & 1 else 0)
    TABLE.append(byte)


def crc64(data):
    r = 2**64 - 1
    for b in data:
        r = r >> 8 ^ TABLE[(r ^ b) & 255]
    return r ^ (2**64 - 1)


def texts(d):
    return [t.decode() for t in d[:]]


def check_states(f, c):
    names = texts(c["state_datasets"])
    assert names[0] == "time" and c["states"].shape == (len(f["time"]), len(names)), names
    for j, name in enumerate(names):
        for k in range(len(f["time"])):
            assert crc64(f[name][k].tobytes()) == c["states"][k, j], (name, k)


def check_fields(f, c):
    for name in c.get("fields", {}):
        sums, d = c["fields"][name], f["unknowns"][name]
        planes = d.chunks[1]
        assert sums.shape == (d.shape[0], -(-d.shape[1] // planes)), (name, sums.shape)
        for k in range(d.shape[0]):
            for i in range(sums.shape[1]):
                part = d[k, i * planes:(i + 1) * planes].astype("<f8")
                assert crc64(part.tobytes()) == sums[k, i], (name, k, i)


def rows(d):
    if d.dtype.kind in "SO":
        return b"".join(t + b"\0" for t in (x if isinstance(x, bytes) else x.encode() for x in d))
    return d.tobytes()


def check_statistics(f, c):
    if "statistics" not in c:
        return
    ends = c["statistics_rows"][:]
    for j, name in enumerate(texts(c["statistics_datasets"])):
        low = 0
        for p, stored in enumerate(c["statistics"][:, j]):
            high = int(ends[p, 1 if name.startswith("iteration_") else 0])
            d = f["solver_statistics"].get(name)
            assert crc64(rows(d[low:high]) if d is not None else b"") == stored, (name, p)
            low = high


def check(name):
    with h5py.File(name, "r") as f:
        c = f["checksums"]
        assert c.attrs["algorithm"] == b"CRC-64/NVME"
        if "time" in f:
            check_states(f, c)
        check_fields(f, c)
        check_statistics(f, c)
        # A record without keys is the letter r and the number 0.
        r = dict(zip(texts(c["record_paths"]), c["records"][:]))
        empty = [p for p in r if p in f and isinstance(f[p], h5py.Group) and len(f[p]) == 0]
        assert all(r[p] == crc64(b"r" + bytes(8)) for p in empty)


def spoil(d):
    """Changes one value of a dataset; False where it has none."""
    if d.size == 0:
        return False
    if d.dtype.kind == "O" or d.dtype.kind == "S":
        v = np.atleast_1d(d[()])
        flat = v.ravel()
        t = flat[-1] if isinstance(flat[-1], bytes) else flat[-1].encode()
        if t == b"":
            return False
        flat[-1] = t[:-1] + bytes([t[-1] ^ 1])
        d[()] = v.reshape(d.shape) if d.shape else flat[0]
        return True
    v = np.array(d[()])
    b = v.reshape(-1).view("u1")
    b[len(b) - v.dtype.itemsize] ^= 1
    d[()] = v
    return True


def damage(name, where):
    found = []
    with h5py.File(name, "r") as f:
        f.visititems(lambda path, o: found.append(path) if isinstance(o, h5py.Dataset) else None)
    # Settings and grids have many of a kind.
    few = [path for path in found if path.startswith(("settings/", "layout/"))]
    for n, path in enumerate(found):
        if path in few and few.index(path) % 6:
            continue
        copy = os.path.join(where, "%d.h5" % n)
        shutil.copy(name, copy)
        with h5py.File(copy, "r+") as f:
            if spoil(f[path]):
                print(n, path)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        for name in sys.argv[2:]:
            check(name)
    else:
        damage(*sys.argv[2:])
