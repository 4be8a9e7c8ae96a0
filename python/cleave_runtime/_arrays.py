"""Arrays on their way into a program and out of it: numpy's, ml_dtypes', and whatever speaks DLPack (torch, jax)."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

try:
    import ml_dtypes
except ImportError:  # bf16 comes and goes as uint16 then
    ml_dtypes = None  # type: ignore[assignment]

# By the numbers of cleave/runtime.h.
NAMES = ["f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"]
BF16 = np.dtype(ml_dtypes.bfloat16) if ml_dtypes else np.dtype(np.uint16)
DTYPES = [np.dtype(one) for one in (np.float16, BF16, np.float32, np.float64, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8,
                                    np.uint16, np.uint32, np.uint64)]

# What numpy has no DLPack type for, by DLPack's code: floats of 16 and 8 bits. They travel as integers of that width.
_NARROW = {4: "bfloat16", 7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn", 11: "float8_e4m3fnuz",
           12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu"}
_UNSIGNED = 1


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    """`DLTensor`, up to its type."""
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]


def _view_capsule(capsule: Any) -> _Tensor:
    """The tensor in a capsule `dltensor`, which is what a producer gives who is not asked for a version."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Tensor.from_address(get(capsule, b"dltensor"))


class _AsIntegers:
    """A producer whose narrow floats are called integers, as numpy takes them; `dtype` is what they are."""

    def __init__(self, producer: Any):
        self.capsule, self.device, self.dtype = producer.__dlpack__(), producer.__dlpack_device__(), None
        tensor = _view_capsule(self.capsule)
        if tensor.code in _NARROW and tensor.bits in (8, 16):
            if ml_dtypes is None:
                raise TypeError(f"{_NARROW[tensor.code]} needs the package ml_dtypes")
            self.dtype = np.dtype(getattr(ml_dtypes, _NARROW[tensor.code]))
            tensor.code = _UNSIGNED

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class DLPackArray:
    """An array of numpy, narrow floats included, for whoever takes DLPack: `torch.from_dlpack(to_dlpack(array))`. Shares its memory."""

    def __init__(self, array: np.ndarray):
        # What must not be written has no word in the capsule that everybody reads.
        self.array = array if array.flags.writeable else array.copy()

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        code = next((code for code, name in _NARROW.items() if self.array.dtype.name == name), None)
        if code is None:
            return self.array.__dlpack__()
        capsule = self.array.view(f"uint{8 * self.array.itemsize}").__dlpack__()
        _view_capsule(capsule).code = code
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def to_dlpack(array: np.ndarray) -> DLPackArray:
    """An output for a consumer of DLPack, of any element type: `torch.from_dlpack(cleave.to_dlpack(outputs["y"]))`."""
    return DLPackArray(array)


def to_numpy(value: Any) -> np.ndarray:
    """Any array, without a copy where that can be: numpy's, one that speaks DLPack and lies in the host's memory, numbers and lists."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        if getattr(value, "requires_grad", False):
            value = value.detach()
        if value.__dlpack_device__()[0] not in (1, 3):
            raise TypeError("an array on a device: programs take arrays of the host, `.cpu()` of torch gives one")
        producer = _AsIntegers(value)
        array = np.from_dlpack(producer)
        return array if producer.dtype is None else array.view(producer.dtype)
    return np.asarray(value)


def fit(value: Any, dtype: np.dtype) -> np.ndarray:
    """`value` as a program takes it: row-major, in this machine's order of bytes. Numbers and lists become what is wanted; an array keeps its
    type, whatever is wanted."""
    plain = not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__") and not hasattr(value, "__array__")
    array = np.asarray(value, dtype) if plain else to_numpy(value)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
