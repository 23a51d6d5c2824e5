"""Reads XDMF files as a visualisation program does, and prints as JSON what each
shows: a list of times with the mesh and the values of each attribute."""
import json
import os
import sys
import xml.etree.ElementTree as ET

import h5py
import numpy as np


def numbers(item):
    return np.array([float(word) for word in item.text.split()])


def values(item, folder):
    """The values of a DataItem, in the shape that it says."""
    shape = tuple(int(n) for n in item.get("Dimensions").split())
    if item.get("ItemType") == "HyperSlab":
        selection, source = item.findall("DataItem")
        rank = len(source.get("Dimensions").split())
        assert selection.get("Dimensions") == "3 %d" % rank, selection.get("Dimensions")
        start, stride, count = numbers(selection).astype(int).reshape(3, rank)
        whole = values(source, folder)
        cut = whole[tuple(slice(a, a + s * n, s) for a, s, n in zip(start, stride, count))]
        assert cut.shape == tuple(count), (cut.shape, count)
        return cut.reshape(shape)
    assert item.get("Format") == "HDF", item.get("Format")
    assert item.get("NumberType") == "Float" and item.get("Precision") == "8"
    path, dataset = item.text.split(":")
    with h5py.File(os.path.join(folder, path), "r") as f:
        found = f[dataset]
        assert found.dtype == np.dtype("<f8") and found.shape == shape, (found, shape)
        return found[()]


def grid(g, folder):
    topology = g.find("Topology")
    assert topology.get("TopologyType") == "3DCoRectMesh"
    nodes = [int(n) for n in topology.get("Dimensions").split()]
    geometry = g.find("Geometry")
    assert geometry.get("GeometryType") == "ORIGIN_DXDYDZ"
    origin, spacing = (numbers(item).tolist() for item in geometry.findall("DataItem"))
    shown = {"time": float(g.find("Time").get("Value")), "origin": origin, "spacing": spacing, "values": {}}
    for attribute in g.findall("Attribute"):
        assert attribute.get("Center") == "Node" and attribute.get("AttributeType") == "Scalar"
        cells = values(attribute.find("DataItem"), folder)
        assert list(cells.shape) == nodes, (cells.shape, nodes)
        shown["values"][attribute.get("Name")] = cells.ravel().tolist()
    return shown


def shown(path):
    collection = ET.parse(path).getroot().find("Domain").find("Grid")
    assert collection.get("CollectionType") == "Temporal"
    folder = os.path.dirname(path)
    return [grid(g, folder) for g in collection.findall("Grid")]


json.dump([shown(path) for path in sys.argv[1:]], sys.stdout)
