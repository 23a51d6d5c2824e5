"""runfile.py check FILE: checks the output that TestPythonReadsOurOutput wrote.
runfile.py checkpoint FILE: likewise the checkpoint.
runfile.py make DIR: writes output.VERSION.h5 and checkpoint.VERSION.h5 of each format
version as a writer other than ours does. The files in golden were made once with it, when
it wrote no hashes yet, and stay as they are.
runfile.py forms DIR: writes FORM-output.h5 and FORM-checkpoint.h5 for each form that
other writers have for what ours writes in one. Those of the form "julia" became
foreign-output.0.0.5.h5 and foreign-checkpoint.0.0.5.h5 in golden.
runfile.py joined FORM FILE...: checks what such outputs became when they were joined.
runfile.py hostile DIR: writes files that must be refused, which were made once likewise.
runfile.py series FILE: checks the fields of a segment that TestPythonReadsFieldsOfAllRanks
wrote.
runfile.py scales FILE: checks the scales of a file that TestScalesOfASegmentStay wrote.
runfile.py recode FILE: gives the fields of an output other forms, of which ours is none."""
import hashlib
import os
import sys

import h5py
import numpy as np

versions = ["0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5"]


def state(t, k, n):
    """What unknown number k has at saved state t: n numbers."""
    return 100 * k + t + np.arange(n) / 1024


def text(v):
    return v.decode() if isinstance(v, bytes) else v


# Reading what our writer wrote.


def root(f):
    assert f.attrs["format_version"].decode() == "0.0.5"
    assert f.attrs["writer"].decode().startswith("fieldstone ")
    assert f.attrs["complete"] == 1
    assert f.attrs["runes2p_commit"].decode() and f.attrs["runes2p_version"].decode()
    assert f.attrs["runes2p_tree_clean"] in (0, 1)


def record(s):
    assert s.attrs["kind"] == b"record"
    assert s["bool"].dtype == np.uint8 and s["bool"][()] == 1 and "bool" in s["bool"].attrs
    assert s["no"][()] == 0 and "bool" in s["no"].attrs
    assert s["int"].dtype == np.int64 and s["int"].shape == () and s["int"][()] == -5
    assert s["large"].dtype == np.uint64 and s["large"][()] == 2**64 - 1
    assert s["float"].dtype == np.float64 and s["float"][()] == 0.1
    assert s["text"].asstr()[()] == "grüße" and s["empty_text"].asstr()[()] == ""
    assert list(s["texts"].asstr()) == ["a", "", "längst"] and s["no_texts"].shape == (0,)
    for t in ["int8", "int16", "int32", "int64"]:
        assert s[t].dtype == np.dtype(t) and list(s[t]) == [-1, 2], t
    assert s["uint8"].dtype == np.uint8 and "bool" not in s["uint8"].attrs
    assert s["uint64"][1] == 2**64 - 1
    assert s["float32"].dtype == np.float32
    assert s["float64"].shape == (1, 3, 2) and (s["float64"][:].ravel() == np.arange(1, 7)).all()
    assert s["no_matrix"].shape == (2, 0, 3)
    assert s["arrays"].attrs["kind"] == b"arrays" and sorted(s["arrays"]) == ["1", "2"]
    assert s["arrays/2"].dtype == np.int8 and s["arrays/2"].shape == (2, 2)
    assert len(s["no_arrays"]) == 0
    assert s["record/inner/x"][()] == 1
    assert s["records"].attrs["kind"] == b"records"
    assert list(s["records/order"].asstr()) == ["z", "a b"]
    assert list(s["records"]) == ["z", "a b", "order"], list(s["records"])  # as they were written
    assert s["records/z/v"].dtype == np.int64 and s["records/a b/v"].dtype == np.float64
    assert s["no_records/order"].shape == (0,)


def layout(l):
    assert l["layout_version"][()] == 2
    assert l["r_faces"].attrs["unit"] == b"m" and list(l["r_faces"]) == [0, 0.1, 0.3, 0.6]
    assert list(l["grids/order"].asstr()) == ["grid_1", "grid_2"]
    assert l["grids/grid_1/p_faces"].attrs["unit"] == b"m_e c" and l["grids/grid_1/p_faces"].shape == (5,)
    assert l["grids/grid_1/xi_faces"].attrs["unit"] == b"1" and l["grids/grid_1/xi_faces"].shape == (3,)
    u = l["unknowns"]
    assert list(u["order"].asstr()) == ["current", "E", "ions", "f", "hot", "phi"]
    assert u["current/unit"].asstr()[()] == "A" and u["f/unit"].asstr()[()] == ""
    assert list(u["ions/group_starts"]) == [1, 3] and "group_starts" not in u["E"]
    assert u["ions/lower_limit_tolerance"][()] == 1e-3 and u["ions/lower_limit_value"][()] == -1
    assert u["ions/lower_limit_reference"].asstr()[()] == "E"
    assert "lower_limit_value" not in u["f"] and "lower_limit_tolerance" not in u["E"]
    assert list(u["hot/grids"].asstr()) == ["grid_1", "grid_2", "grid_2"]


def unknowns(u, states):
    """The shapes are those of the format, reversed: time first."""
    shapes = {"current": (), "E": (3, 1), "ions": (3, 5), "f": (3, 2, 4), "phi": (2, 3, 4),
              "hot/radius_1": (2, 4), "hot/radius_2": (3, 2), "hot/radius_3": (3, 2)}
    units = {"current": "A", "E": "V/m", "ions": "m^-3", "f": "", "hot": "m^-3", "phi": ""}
    assert sorted(u) == sorted(units)
    assert u["hot"].attrs["unit"] == b"m^-3"
    at = 0
    for name in ["current", "E", "ions", "f", "hot/radius_1", "hot/radius_2", "hot/radius_3"]:
        d = u[name]
        assert d.dtype == np.float64 and d.shape == (states,) + shapes[name], (name, d.shape)
        assert text(d.attrs["unit"]) == units[name.split("/")[0]], name
        n = int(np.prod(shapes[name]))
        for t in range(states):
            assert (d[t].ravel() == t + (at + np.arange(n)) / 1024).all(), name
        at += n
    phi = u["phi"]
    assert phi.shape == (states, 2, 3, 4) and phi.attrs["unit"] in (b"", h5py.Empty("S1"))
    for t in range(states):
        z, y, x = np.meshgrid(np.arange(2), np.arange(3), np.arange(4), indexing="ij")
        assert (phi[t] == t + x / 8 + y / 64 + z / 512).all()


scales = ["x", "y", "z", "r", "component", "component_2"]


def coordinates(f):
    """The scales of fields and radial unknowns, which HDF5 itself takes for attached."""
    at = {"x": [0, 1, 2, 3], "y": [-1, -0.5, 0], "z": [2, 2.25], "r": [0.05, 0.2, 0.45], "component": [1],
          "component_2": [1, 2, 3, 4, 5], "time": f["time"][:]}
    for name, axes in [("phi", ["time", "z", "y", "x"]), ("E", ["time", "r", "component"]), ("ions", ["time", "r", "component_2"])]:
        d = f["unknowns"][name]
        for i, axis in enumerate(axes):
            s = d.dims[i][0]
            assert len(d.dims[i]) == 1 and s.name == "/" + axis and np.allclose(s[:], at[axis], rtol=1e-15, atol=0), (name, i)
            assert h5py.h5ds.is_scale(s.id) and h5py.h5ds.is_attached(d.id, s.id, i), (name, i)
            assert h5py.h5ds.get_scale_name(s.id) == axis.encode()
    assert f["r"].attrs["unit"] == b"m" and "unit" not in f["x"].attrs and f["component"].dtype == np.int64
    for name in ["current", "f", "hot/radius_1"]:
        assert "DIMENSION_LIST" not in f["unknowns"][name].attrs, name
    assert len(f["time"].attrs["REFERENCE_LIST"]) == 3 and len(f["x"].attrs["REFERENCE_LIST"]) == 1


def check(name):
    with h5py.File(name, "r") as f:
        root(f)
        assert sorted(f) == sorted(["checksums", "layout", "settings", "solver_statistics", "time", "unknowns", "update_states"] + scales)
        record(f["settings"])
        layout(f["layout"])
        assert f["time"].attrs["unit"] == b"s" and list(f["time"]) == [0, 0.5, 1]
        unknowns(f["unknowns"], 3)
        coordinates(f)
        s = f["solver_statistics"]
        assert list(s["time"]) == [0.5, 0.25, 1] and list(s["accepted"]) == [0, 1, 1] and "bool" in s["accepted"].attrs
        assert list(s["outcome"].asstr()) == ["error too large", "", "converged"]
        assert s["iteration_attempt"].dtype == np.int64 and list(s["iteration_attempt"]) == [1, 1, 2, 3]
        assert len(s) == 11
        assert f["update_states/flux"].shape == (3, 2) and list(f["update_states/flux"][2]) == [2, 7]


def checkpoint(name):
    with h5py.File(name, "r") as f:
        root(f)
        assert sorted(f) == sorted(["checksums", "checkpoint", "layout", "settings", "time", "unknowns"] + scales)
        record(f["settings"])
        layout(f["layout"])
        unknowns(f["unknowns"], 1)
        coordinates(f)
        c = f["checkpoint"]
        assert sorted(c) == ["saved_count", "segment", "stepper", "summary", "time", "update_states"]
        assert c["time"][()] == 2.5 and c["time"].shape == () and list(f["time"]) == [2.5]
        assert c["segment"][()] == 3 and c["saved_count"][()] == 17
        assert c["summary/attempted"][()] == 9 and c["summary/wall_time"][()] == 1.5
        assert c["stepper/type"].asstr()[()] == "bdf"
        record(c["stepper/history"])
        assert list(c["update_states/flux"]) == [1, 2, 3]


# Writing as others do: no kinds, no mark, strings of variable length.


def put(group, name, v):
    if isinstance(v, dict):
        g = group.create_group(name)
        for k, w in v.items():
            put(g, k, w)
    elif isinstance(v, bool):
        group[name] = np.uint8(v)
        group[name].attrs["bool"] = np.uint8(1)
    elif isinstance(v, list) and v and isinstance(v[0], dict):
        g = group.create_group(name)
        for w in v:
            put(g, w["name"], w)
        put(g, "order", [w["name"] for w in v])
    elif isinstance(v, list) and v and isinstance(v[0], np.ndarray):
        g = group.create_group(name)
        for i, w in enumerate(v):
            g[str(i + 1)] = w
    elif isinstance(v, list):
        group.create_dataset(name, data=v, dtype=h5py.string_dtype())
    else:
        group[name] = v


SECTIONS = ["grids", "layout", "system", "updates", "prescribed", "solver", "time", "run"]


def sha(text):
    """A hash as another writer has it: of what only it knows."""
    return hashlib.sha256(text.encode()).hexdigest()


def settings(version):
    s = {name: {"of": name} for name in SECTIONS}
    s.update({
        "grids": {"grid_1": {"p_faces": np.array([0.0, 1, 2]), "xi_faces": np.array([-1.0, 0, 1])}},
        "system": {
            "tolerance": 1e-8,
            "iterations": 20,
            "adaptive": True,
            "terms": [{"name": "drift", "order_of": np.int32(2)}, {"name": "advection", "upwind": False}],
            "points": [np.array([1.0, 2]), np.array([[1, 2], [3, 4]])],
            "names": ["E", "f"],
        },
        "hashes": {name: sha(name) for name in SECTIONS},
        "setup_hash": sha("setup"),
        "segment": {"index": 2, "start_time": 0.0, "saved_before": 5},
    })
    if version >= "0.0.3":
        s["segment"]["attempts_before"] = 4
    return s


def write_layout(f, version):
    units = version >= "0.0.5"
    unknowns = [
        {"name": "I", "kind": "scalar", "scale": 1e6, "unit": "A"},
        {"name": "n", "kind": "radial", "scale": 1.0, "components": 3, "unit": "m^-3"},
        {"name": "f", "kind": "kinetic", "scale": 1.0, "grids": ["grid_1"], "unit": ""},
        {"name": "hot", "kind": "kinetic", "scale": 1.0, "grids": ["grid_1", "grid_2"], "unit": "1/m"},
    ]
    if version >= "0.0.4":
        unknowns[1].update(group_starts=np.array([1, 3]), lower_limit_tolerance=0.5, lower_limit_value=2.0, lower_limit_reference="I")
        unknowns[2].update(lower_limit_tolerance=0.25)
    if not units:
        for u in unknowns:
            del u["unit"]
    put(f, "layout", {
        "layout_version": 2 if version >= "0.0.2" else 1,
        "r_faces": np.array([0.0, 0.5, 1]),
        "grids": [
            {"name": "grid_1", "p_faces": np.array([0.0, 1, 2]), "xi_faces": np.array([-1.0, 0, 1])},
            {"name": "grid_2", "p_faces": np.array([0.0, 1, 2, 3]), "xi_faces": np.array([-1.0, 1])},
        ],
        "unknowns": unknowns,
    })
    if units:
        f["layout/r_faces"].attrs["unit"] = "m"
        for g in ["grid_1", "grid_2"]:
            f["layout/grids/" + g + "/p_faces"].attrs["unit"] = "m_e c"
            f["layout/grids/" + g + "/xi_faces"].attrs["unit"] = "1"


def write_root(f, version, times, more={}):
    f.attrs["format_version"] = version
    f.attrs["runes2p_commit"] = "0123456789abcdef"
    f.attrs["runes2p_version"] = "0.3.0"
    f.attrs["runes2p_tree_clean"] = np.uint8(1)
    put(f, "settings", {**settings(version), **more})
    write_layout(f, version)
    f["time"] = np.array(times)
    u = f.create_group("unknowns")
    shapes = [("I", ()), ("n", (2, 3)), ("f", (2, 2, 2)), ("hot/radius_1", (2, 2)), ("hot/radius_2", (1, 3))]
    for k, (name, shape) in enumerate(shapes):
        n = int(np.prod(shape))
        u[name] = np.array([state(t, k, n).reshape(shape) for t in range(len(times))])
    if version >= "0.0.5":
        f["time"].attrs["unit"] = "s"
        for name, unit in [("I", "A"), ("n", "m^-3"), ("f", ""), ("hot", "1/m"), ("hot/radius_1", "1/m"), ("hot/radius_2", "1/m")]:
            u[name].attrs["unit"] = unit


def make(where):
    for version in versions:
        with h5py.File(os.path.join(where, "output." + version + ".h5"), "w") as f:
            write_root(f, version, [0.0, 0.5])
            s = f.create_group("solver_statistics")
            s["time"] = np.array([0.5, 0.25, 0.5])
            s["step_length"] = np.array([0.5, 0.25, 0.25])
            if version >= "0.0.2":
                put(s, "accepted", np.array([0, 1, 1], dtype="u1"))
                s["accepted"].attrs["bool"] = np.uint8(1)
                s["nonlinear_iterations"] = np.array([3, 2, 1])
            if version >= "0.0.3":
                put(s, "outcome", ["rejected", "converged", "converged"])
                s["iteration_attempt"] = np.array([1, 1, 1, 2, 2, 3])
                s["iteration_residual"] = np.array([1, 0.5, 0.25, 1, 1e-9, 0])
            if version >= "0.0.4":
                s["error_estimate"] = np.array([2.0, 0.5, 0.25])
                s["wall_time"] = np.array([0.1, 0.2, 0.3])
            f.create_group("update_states")["flux"] = np.array([[0.0, 7], [1, 7]])
        with h5py.File(os.path.join(where, "checkpoint." + version + ".h5"), "w") as f:
            write_root(f, version, [0.25])
            put(f, "checkpoint", {
                "time": 0.25, "segment": 2, "saved_count": 6,
                "summary": {"attempted": 9, "accepted": 7, "wall_time": 1.5},
                "stepper": {"type": "bdf", "step_length": 0.125, "history": [np.array([1.0, 2]), np.array([3.0])]},
                "update_states": {"flux": np.array([0.0, 7])},
            })


# The forms that others have for booleans and numbers.


class Bits:
    """Booleans as bit fields of one byte, as Julia writes them; h5py has no type for these."""

    def __init__(self, values):
        self.values = np.array(values, dtype="u1")

    def write(self, group, name):
        space = h5py.h5s.create_simple(self.values.shape) if self.values.shape else h5py.h5s.create(h5py.h5s.SCALAR)
        d = h5py.h5d.create(group.id, name.encode(), h5py.h5t.STD_B8LE, space)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, self.values, mtype=h5py.h5t.NATIVE_B8)


forms = {
    # form: booleans, floats, integers, what a number of the settings and the layout is
    "julia": (Bits, np.dtype("f8"), np.dtype("i8"), lambda v: v),
    "bytes": (lambda v: np.array(v, dtype="u1"), np.dtype("f4"), np.dtype("i4"), lambda v: np.array([v])),
    "signed": (lambda v: np.array(v, dtype="i1"), np.dtype(">f8"), np.dtype(">u2"), lambda v: np.array([v], dtype=">i4")),
    "enumerations": (lambda v: np.array(v, dtype=np.bool_), np.dtype("f8"), np.dtype("u1"), float),
    "integers": (lambda v: np.array(v, dtype=">i8"), np.dtype("f8"), np.dtype("i8"), int),
}


def write(group, name, v):
    if isinstance(v, Bits):
        v.write(group, name)
    else:
        group[name] = v


def own_settings(f, form):
    """What a record of ours can't hold, or would hold in another form."""
    bools = forms[form][0]
    g = f["settings"].create_group("forms")
    write(g, "flag", bools(True))
    g["order"] = "the third one"
    g["1"] = 7
    g["22"] = "digits"
    for name, t in [("no_floats", "f8"), ("no_ints", "i4"), ("no_bytes", "u1"), ("no_text", "S1")]:
        g[name] = h5py.Empty(t)
    write(g, "no_flags", bools([]))
    put(g, "numbered", [{"name": "2", "v": 1}, {"name": "1", "v": 2}])
    g.create_group("no_list").create_dataset("order", (0,), dtype=h5py.string_dtype())
    put(g, "named", {"z": {"name": "z"}, "order": {"name": "order"}})


def own_statistics(s, form):
    bools, floats, ints, _ = forms[form]
    s["time"] = np.array([0.5, 0.25, 0.5], dtype=floats)
    s["step_length"] = np.array([0.5, 0.25, 0.25], dtype=floats)
    write(s, "accepted", bools([0, 1, 1]))
    s["nonlinear_iterations"] = np.array([3, 2, 1], dtype=ints)
    s["error_estimate"] = h5py.Empty("f8")
    put(s, "outcome", ["rejected", "converged", "converged"])
    s["iteration_attempt"] = np.array([1, 2, 2, 3], dtype=ints)
    s["iteration_residual"] = np.array([1, 1, 0.5, 1], dtype=floats)
    # What the format doesn't have.
    s["damping"] = np.array([0.5, 1, 1], dtype=floats)
    s["norms"] = np.array([[1, 2], [3, 4], [5, 6]], dtype=ints)
    write(s, "refreshed", bools([1, 0, 0]))
    put(s, "phase", ["start", "", "end"])
    s["iteration_steps"] = np.array([1, 1, 2, 1], dtype="i2")
    s["total"] = 3.5
    s["histogram"] = np.arange(5)
    s["pairs"] = np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])
    s["more/deeper"] = 1


def own_forms(where):
    for form, (_, _, _, number) in forms.items():
        integer = int if number is float else number
        more = {"segment": {"index": number(2), "start_time": number(0), "saved_before": number(5), "attempts_before": number(4),
                            "previous_setup_hash": "unknown"}}
        for kind, times in [("output", [0, 1]), ("checkpoint", [0.25])]:
            with h5py.File(os.path.join(where, form + "-" + kind + ".h5"), "w") as f:
                write_root(f, "0.0.5", times, more)
                own_settings(f, form)
                for path in ["layout/layout_version", "layout/unknowns/n/components"]:
                    del f[path]
                f["layout/layout_version"], f["layout/unknowns/n/components"] = number(2), number(3)
                if kind == "output":
                    own_statistics(f.create_group("solver_statistics"), form)
                    f.create_group("update_states")["flux"] = np.array([[0.0, 7], [1, 7]])
                else:
                    put(f, "checkpoint", {
                        "time": np.array([0.25]) if form == "bytes" else 0.25, "segment": integer(2), "saved_count": integer(6),
                        "summary": {"attempted": number(9), "accepted": number(7), "wall_time": 1.5},
                        "stepper": {"type": "bdf", "step_length": 0.125, "history": [np.array([1.0, 2]), np.array([3.0])]},
                        "update_states": {"flux": np.array([0.0, 7])},
                    })


def joined(*forms_and_files):
    for form, name in zip(forms_and_files[::2], forms_and_files[1::2]):
        joined_file(form, name)


def joined_file(form, name):
    """A joined file has everything as it was, in forms of ours where the types are."""
    with h5py.File(name, "r") as f:
        assert f.attrs["writer"].startswith(b"fieldstone ") and f.attrs["complete"] == 1
        s = f["settings"]
        assert s.attrs["hashes_by"] == b"unknown"
        assert s["setup_hash"].asstr()[()] == sha("setup")
        assert {k: s["hashes"][k].asstr()[()] for k in s["hashes"]} == {k: sha(k) for k in SECTIONS}
        g = s["forms"]
        assert g["flag"][()] == 1 and ("bool" in g["flag"].attrs) == (form in ("julia", "enumerations"))
        assert g["order"].asstr()[()] == "the third one" and g["1"][()] == 7 and g["22"].asstr()[()] == "digits"
        for k in ["no_floats", "no_ints", "no_bytes", "no_flags"]:
            assert g[k].shape == (0,), k
        assert g["no_ints"].dtype == np.int32 and g["no_text"].asstr()[()] == ""
        n = g["numbered"]
        assert list(n["order"].asstr()) == ["2", "1"] and len(n) == 3
        assert n["1/v"][()] == 2 and n["2/name"].asstr()[()] == "2"
        assert list(g["no_list/order"]) == [] and len(g["no_list"]) == 1
        assert sorted(g["named"]) == ["order", "z"] and g["named/order/name"].asstr()[()] == "order"
        assert list(s["system/terms/order"].asstr()) == ["drift", "advection"]
        assert sorted(s["system/points"]) == ["1", "2"] and s["system/points/2"].shape == (2, 2)
        t = f["solver_statistics"]
        assert list(t["accepted"]) == [0, 1, 1] and "bool" in t["accepted"].attrs
        assert list(t["time"]) == [0.5, 0.25, 0.5] and list(t["nonlinear_iterations"]) == [3, 2, 1]
        assert list(t["damping"]) == [0.5, 1, 1] and (t["norms"][:] == [[1, 2], [3, 4], [5, 6]]).all()
        _, floats, ints, _ = forms[form]
        assert t["norms"].dtype == ints.newbyteorder("<") and t["damping"].dtype == floats.newbyteorder("<")
        assert list(t["refreshed"]) == [1, 0, 0] and list(t["phase"].asstr()) == ["start", "", "end"]
        assert t["iteration_steps"].dtype == np.int16 and list(t["iteration_steps"]) == [1, 1, 2, 1]
        assert not {"total", "histogram", "pairs", "more"} & set(t)


def minimal(f):
    """The least that an output file has, with one saved state of one number."""
    f.attrs["format_version"] = "0.0.5"
    put(f, "settings", {"run": {"x": 1}})
    put(f, "layout", {"layout_version": 2, "unknowns": [{"name": "n", "kind": "scalar"}]})
    f["time"] = np.array([0.0])
    f["unknowns/n"] = np.array([1.0])


def replace(f, name, **how):
    del f[name]
    f.create_dataset(name, **how)


def deep(f):
    g = f["settings"]
    for _ in range(100):
        g = g.create_group("deeper")


def many_names(f):
    """Each group has the next one under two names: 2**40 paths."""
    g = f["settings"]
    for _ in range(40):
        next = g.create_group("a")
        g["b"] = next
        g = next


def compound(f):
    f["settings/run/pair"] = np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])


def links(f, link):
    f["settings/run/link"] = link


def hard(f):
    f["settings/run/link"] = f["settings"]


hostile_files = {
    "sound": lambda f: None,
    "loop": hard,
    "soft_loop": lambda f: links(f, h5py.SoftLink("/settings/run/link")),
    "soft_up": lambda f: links(f, h5py.SoftLink("/settings")),
    "dangling": lambda f: links(f, h5py.SoftLink("/nowhere")),
    "external": lambda f: links(f, h5py.ExternalLink("sound.h5", "/settings")),
    "deep": deep,
    "many_names": many_names,
    "compound": compound,
    "huge_time": lambda f: replace(f, "time", shape=(2**40,), chunks=(1024,), dtype="f8"),
    "huge_unknown": lambda f: replace(f, "unknowns/n", shape=(2**40,), chunks=(1024,), dtype="f8"),
    "huge_record": lambda f: f["settings/run"].create_dataset("x2", shape=(2**20, 2**20), chunks=(16, 16), dtype="f8"),
    "external_time": lambda f: replace(f, "time", shape=(1,), dtype="f8", external=[("elsewhere.bin", 0, 8)]),
}


def hostile(where):
    for name, change in hostile_files.items():
        with h5py.File(os.path.join(where, name + ".h5"), "w") as f:
            minimal(f)
            change(f)


# Fields that all ranks of a session write.


def series(name):
    with h5py.File(name, "r") as f:
        t = f["time"][:]
        z, y, x = np.mgrid[0:6, 0:5, 0:7].astype("f8")
        for name, unit, at in [
            ("phi", b"1", lambda t: t + 0.1 * x + 10.7 * y + 100.3 * z),
            ("heat", b"", lambda t: 1024 * t + (x + 8 * y + 64 * z)),
        ]:
            d = f["unknowns"][name]
            assert d.shape == (len(t), 6, 5, 7) and d.dtype == "<f8" and d.maxshape[0] is None, d
            assert d.attrs["unit"] == unit, d.attrs["unit"]
            for i in range(len(t)):
                assert (d[i] == at(t[i])).all(), (name, i)
            for axis, scale in enumerate(["time", "z", "y", "x"]):
                assert d.dims[axis][0].name == "/" + scale and h5py.h5ds.is_attached(d.id, d.dims[axis][0].id, axis)
                assert list(d.dims[axis][0]) == (list(t) if axis == 0 else list(range(d.shape[axis])))
        assert (f["unknowns/E"][:] == t).all() and f["time"].maxshape == (None,)
        assert len(f["time"].attrs["REFERENCE_LIST"]) == 2  # E is a scalar
        assert f.attrs["complete"] == 1


def attached(f, name, axes):
    d = f["unknowns"][name]
    for i, (axis, values) in enumerate(axes):
        assert d.dims[i][0].name == "/" + axis and h5py.h5ds.is_attached(d.id, d.dims[i][0].id, i), (name, i)
        assert list(d.dims[i][0]) == list(values), (name, i, d.dims[i][0][:])


def of_segment(name):
    with h5py.File(name, "r") as f:
        t = ("time", f["time"][:])
        assert len(t[1]) == len(f["unknowns/E"])
        for field in ["phi", "heat"]:
            attached(f, field, [t, ("z", range(6)), ("y", range(5)), ("x", range(7))])
        attached(f, "T", [t, ("r", [0.5, 2]), ("component", [1, 2])])
        assert not f["unknowns/E"].dims[0].keys()


def recode(name):
    with h5py.File(name, "r+") as f:
        phi, heat = f["unknowns/phi"][:], f["unknowns/heat"][:]
        own = {"chunks": f["unknowns/heat"].chunks, "maxshape": f["unknowns/heat"].maxshape}
        del f["unknowns/phi"], f["unknowns/heat"]
        f["unknowns"].create_dataset("phi", data=phi, chunks=(1, 2, 5, 7), compression="gzip")
        f["unknowns"].create_dataset("heat", data=heat, dtype=">f8", **own)


if __name__ == "__main__":
    {"check": check, "checkpoint": checkpoint, "make": make, "hostile": hostile,
     "series": series, "scales": of_segment, "recode": recode, "forms": own_forms,
     "joined": joined}[sys.argv[1]](*sys.argv[2:])
