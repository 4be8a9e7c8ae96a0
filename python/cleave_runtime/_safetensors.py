"""Checkpoints: files of named tensors (safetensors), as numpy arrays.

    | n, 8 bytes | header, n bytes of JSON: {name: {"dtype", "shape", "data_offsets"}} | data |
"""
from __future__ import annotations

import json
import os

import numpy as np

from ._arrays import BF16

_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": BF16, "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
          "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_}


def read(path: str) -> dict[str, np.ndarray]:
    """The tensors of a file that this runtime has written, in its order."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"]).copy()
    return tensors


def write(path: str, tensors: dict[str, np.ndarray]) -> None:
    words = {np.dtype(dtype): word for word, dtype in _TYPES.items()}
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": words[array.dtype], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())


def remove(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)
