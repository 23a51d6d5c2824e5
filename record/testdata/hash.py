"""The canonical hash of records, written from docs/record-hash.md alone.

usage: python3 hash.py VECTORS.json

Recomputes the encoding and the hash of every record in the file from its JSON
view, prints what differs, and fails if something does. With --fill as second
argument it prints the file with the encodings and hashes filled in instead.
"""

import hashlib
import json
import struct
import sys

FORMATS = {
    "int8": ("i1", "b"), "int16": ("i2", "h"), "int32": ("i4", "i"), "int64": ("i8", "q"),
    "uint8": ("u1", "B"), "uint16": ("u2", "H"), "uint32": ("u4", "I"), "uint64": ("u8", "Q"),
    "float32": ("f4", "f"), "float64": ("f8", "d"),
}


def word(n):
    return struct.pack("<Q", n)


def string(s):
    data = s.encode("utf-8")
    return word(len(data)) + data


def element(kind, v):
    if kind.startswith("float"):
        v = float(v)  # takes "NaN", "Infinity" and "-Infinity" too
        if v != v:
            return bytes.fromhex("0000c07f" if kind == "float32" else "000000000000f87f")
    return struct.pack("<" + FORMATS[kind][1], v)


def array(v):
    kind = v["/array"]
    out = b"a" + FORMATS[kind][0].encode() + word(len(v["dims"]))
    for d in v["dims"]:
        out += word(d)
    return out + b"".join(element(kind, x) for x in v["values"])


def encode(v):
    if isinstance(v, bool):
        return b"b\x01" if v else b"b\x00"
    if isinstance(v, int):
        return b"u" + word(v) if v >= 2**63 else b"i" + struct.pack("<q", v)
    if isinstance(v, float):
        return b"f" + element("float64", v)
    if isinstance(v, str):
        return b"s" + string(v)
    if isinstance(v, list):
        return b"S" + word(len(v)) + b"".join(string(s) for s in v)
    if "/float" in v:
        return b"f" + element("float64", v["/float"])
    if "/array" in v:
        return array(v)
    if "/arrays" in v:
        return b"A" + word(len(v["/arrays"])) + b"".join(array(a) for a in v["/arrays"])
    if "/records" in v:
        return b"R" + word(len(v["/records"])) + b"".join(encode(r) for r in v["/records"])
    keys = sorted(v, key=lambda key: key.encode("utf-8"))
    return b"r" + word(len(keys)) + b"".join(string(key) + encode(v[key]) for key in keys)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        vectors = json.load(f)
    faults = 0
    for vector in vectors:
        encoding = encode(vector["record"])
        digest = hashlib.sha256(b"fieldstone-record-1\n" + encoding).hexdigest()
        if sys.argv[2:] == ["--fill"]:
            vector["encoding"], vector["hash"] = encoding.hex(), digest
            continue
        for key, want in (("encoding", encoding.hex()), ("hash", digest)):
            if vector[key] != want:
                faults += 1
                print(f"{vector['name']}: {key} is {vector[key]}, computed {want}")
    if sys.argv[2:] == ["--fill"]:
        lines = (" " + json.dumps(v, ensure_ascii=False) for v in vectors)
        print("[\n" + ",\n".join(lines) + "\n]")
    return faults != 0


if __name__ == "__main__":
    sys.exit(main())
