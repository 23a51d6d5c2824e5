"""check.py check FILE: checks the file that TestPythonReadsWhatWeWrite wrote.
check.py make FILE EARLIEST|LATEST: writes the one that TestWeReadWhatPythonWrote reads.
check.py grown FILE: checks the file of TestOthersReadListsThatGrew.
check.py growing FILE: writes the one of TestListsOfOthersGrow."""
import sys

import h5py
import numpy as np

numbers = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]


def check(name):
    with h5py.File(name, "r") as f:
        for t in numbers:
            want = np.array([0, 1, 100], dtype="<" + t)
            d = f["numbers/" + t]
            assert d.dtype == want.dtype and d.shape == (3,), (t, d)
            assert (d[:] == want).all(), (t, d[:])
            a = f["numbers"].attrs[t]
            assert a.dtype == want.dtype and (a == want).all(), (t, a)
        assert f["bools"].dtype == np.uint8 and list(f["bools"]) == [1, 0], f["bools"][:]
        assert "bool" in f["bools"].attrs
        assert f["bools"].attrs["flag"] == np.bool_(True)
        assert f["block"].shape == (2, 3, 4) and (f["block"][:].ravel() == np.arange(24)).all()
        assert f["scalar"].shape == () and f["scalar"][()] == 1.5
        assert f["empty"].shape == (0, 3)
        assert f["text"].asstr()[()] == "Größe µm", f["text"][()]
        assert f["nothing"].asstr()[()] == ""
        assert list(f["fixed"].asstr()) == ["a", "", "long é"], f["fixed"][:]
        assert list(f["variable"].asstr()) == ["a", "", "long é"], f["variable"][:]
        assert f["text"].attrs["unit"].decode() == "V/m"
        assert list(f["text"].attrs["list"]) == ["x", "yy"]
        g = f["grown"]
        assert g.maxshape == (None, 4) and g.chunks == (2, 4) and g.compression == "gzip"
        assert (g[:].ravel() == np.arange(20)).all()
        assert list(f) == sorted(f)


def bits(f, name, values, t=h5py.h5t.STD_B8LE, space=None):
    """Bit fields, for which h5py has no types of numpy; also as an attribute."""
    space = space or h5py.h5s.create_simple((len(values),))
    data = np.array(values, dtype="u%d" % t.get_size())
    memory = {1: h5py.h5t.NATIVE_B8, 2: h5py.h5t.NATIVE_B16}[t.get_size()]
    h5py.h5d.create(f.id, name.encode(), t, space).write(h5py.h5s.ALL, h5py.h5s.ALL, data, mtype=memory)
    h5py.h5a.create(f[name].id, b"v", t, space).write(data, mtype=memory)


def make(name, libver):
    with h5py.File(name, "w", libver=libver.lower()) as f:
        for t in numbers:
            for order in "<>":
                v = np.array([0, 1, 100], dtype=order + t)
                path = "numbers/" + ("le" if order == "<" else "be") + t
                f[path] = v
                f[path].attrs["v"] = v
        f["bools"] = np.array([True, False])
        f["bools"].attrs["flag"] = True
        f["bytes"] = np.array([1, 0], dtype="u1")
        f["bytes"].attrs["bool"] = 1
        f["bad"] = np.array([1, 2], dtype="u1")
        f["bad"].attrs["bool"] = 1
        bits(f, "bits", [1, 0, 1])
        bits(f, "bigbits", [1, 0, 1], h5py.h5t.STD_B8BE)
        bits(f, "bit", [1], space=h5py.h5s.create(h5py.h5s.SCALAR))
        bits(f, "badbits", [1, 0, 6])
        bits(f, "widebits", [1, 0], h5py.h5t.STD_B16LE)
        for t in numbers[:8]:
            f["plain/" + t] = np.array([1, 0, 1], dtype=">" + t)
            f["plain/" + t].attrs["v"] = np.array([1, 0, 1], dtype=">" + t)
        f["minus"] = np.array([1, -1], dtype="i1")
        f["large"] = np.array([0, 256], dtype="i8")
        f["whole"] = np.array([0, -5, 1 << 53], dtype=">i8")
        f["wholeu"] = np.array([0, 1 << 63], dtype="u8")
        f["odd"] = np.array([0, (1 << 53) + 1], dtype="i8")
        f["oddu"] = np.array([0, (1 << 64) - 1], dtype="u8")
        f["most"] = np.array([(1 << 63) - 1], dtype="i8")
        f["real"] = np.array([0.0, 1.0])
        colors = h5py.enum_dtype({"RED": 0, "GREEN": 1}, basetype="i1")
        f.create_dataset("colors", data=[0, 1], dtype=colors)
        for t in numbers:
            f["none/" + t] = h5py.Empty(t)
            f["none/" + t].attrs["v"] = h5py.Empty(t)
        f["none/bool"] = h5py.Empty(np.bool_)
        f["onetext"] = ["alone"]
        f["onetext"].attrs["v"] = ["alone"]
        f["text"] = "Größe µm"
        f["text"].attrs["unit"] = "V/m"
        f["text"].attrs["list"] = ["x", "", "yyy"]
        f["variable"] = ["a", "", "long é"]
        f.create_dataset("chunked", data=["s%d" % i for i in range(50)], dtype=h5py.string_dtype(), chunks=(7,), compression="gzip")
        f["ascii"] = np.array([b"a", b"", b"bcd"])
        for n, pad in (("term", h5py.h5t.STR_NULLTERM), ("null", h5py.h5t.STR_NULLPAD), ("space", h5py.h5t.STR_SPACEPAD)):
            t = h5py.h5t.C_S1.copy()
            t.set_size(5)
            t.set_strpad(pad)
            d = h5py.h5d.create(f.id, n.encode(), t, h5py.h5s.create_simple((3,)))
            fill = b" " if n == "space" else b"\0"
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([s.ljust(5, fill) for s in (b"a", b"", b"b c")], dtype="S5"), mtype=t)
        f["null"].attrs["none"] = h5py.Empty("S1")
        f["emptytext"] = h5py.Empty("S1")
        f["compound"] = np.zeros(2, dtype=[("a", "i4"), ("b", "f8")])
        f["complex"] = np.zeros(2, dtype="c16")
        f["half"] = np.zeros(2, dtype="f2")
        f["opaque"] = np.void(b"abc")
        f["reference"] = f["text"].ref
        f.create_dataset("sequence", (2,), dtype=h5py.vlen_dtype("i4"))
        f["type"] = np.dtype("i4")
        f["soft"] = h5py.SoftLink("/text")
        f["loop/a"] = h5py.SoftLink("/loop/b")
        f["loop/b"] = h5py.SoftLink("/loop/a")
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["external"] = h5py.ExternalLink("other.h5", "/x")
        f["up/down"] = h5py.SoftLink("/")
        inner = f.create_group("cycle/inner")
        inner["back"] = f["cycle"]
        f["via"] = h5py.SoftLink("/external/x")
        f.create_dataset("huge", (1 << 40, 1 << 10), dtype="f8", chunks=(1, 1024))
        f.create_dataset("swapped", data=np.arange(10.0), dtype=">f8", chunks=(10,))
        f.create_dataset("sparse", (1000,), dtype="f8", chunks=(10,))
        f.create_dataset("overflow", (1 << 40, 1 << 40), dtype="u1", chunks=(1024, 1024))
        f.create_dataset("hugetext", (1 << 40,), dtype=h5py.string_dtype(), chunks=(1024,))
        f.create_dataset("elsewhere", (10,), dtype="u1", external=[("/etc/hostname", 0, 10)])
        layout = h5py.VirtualLayout((10,), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "x", (10,))
        f.create_virtual_dataset("virtual", layout)
        g = f
        for i in range(150):
            g = g.create_group("n")


def grown(name):
    with h5py.File(name, "r") as f:
        assert f["none"].shape == (0,) and f["none"].maxshape == (None,)
        assert h5py.check_string_dtype(f["grown"].dtype) == ("utf-8", None), f["grown"].dtype
        want = ["a", "", "long é"] + ["s%d" % i for i in range(300)] + ["", ""]
        assert list(f["grown"].asstr()) == want, f["grown"][:]


def scales(name):
    with h5py.File(name, "r") as f:
        time, x = f["time"], f["axes/x"]
        assert len(time) == 5 and h5py.h5ds.get_scale_name(x.id) == b"x"
        for s, axis in [(time, 0), (x, 1)]:
            assert h5py.h5ds.is_scale(s.id) and len(s.attrs["REFERENCE_LIST"]) == 4200
            for i in [0, 1, 4199]:
                d = f["many/d%d" % i]
                assert h5py.h5ds.is_attached(d.id, s.id, axis) and not h5py.h5ds.is_attached(d.id, s.id, 1 - axis)
                assert len(d.dims[axis]) == 1 and d.dims[axis][0] == s
        assert list(f["many/d4199"].dims[1]["x"]) == [0.5, 1.5, 2.5]


def growing(name):
    with h5py.File(name, "w") as f:
        grows = dict(data=["a"], maxshape=(None,))
        f.create_dataset("text", dtype=h5py.string_dtype(), **grows)
        f.create_dataset("ascii", dtype=h5py.string_dtype("ascii"), **grows)
        f.create_dataset("packed", dtype=h5py.string_dtype(), compression="gzip", **grows)
        f.create_dataset("bounded", data=["a"], dtype=h5py.string_dtype(), maxshape=(3,))
        f.create_dataset("fixed", data=[b"a"], dtype="S5", maxshape=(None,))


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3])
else:
    {"check": check, "grown": grown, "scales": scales, "growing": growing}[sys.argv[1]](sys.argv[2])
