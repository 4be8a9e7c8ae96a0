"""Compiled programs from Python: libcleave_runtime by ctypes, arrays of numpy in and out.

    program = Program("build/release", "model.cleave")
    outputs = program.run({"x": x})                     # {name: array}; states stay in the ranks
    outputs = program.run({"x": x}, ["y", "present_0"]) # these, states among them
    program.reset()                                     # states are zeros again

The package `cleave_runtime` (docs/python.md) is what to install and use. This shows how little a binding of another language needs, in one file
that runs from a build folder as it is, where that package has no library next to it.
"""
import ctypes
import os

import numpy as np

# By the numbers of cleave/runtime.h; numpy has no bf16.
TYPES = [np.float16, None, np.float32, np.float64, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
         np.uint32, np.uint64]


class Tensor(ctypes.Structure):
    """`cleave_tensor`"""
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int32), ("rank", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]

    def fill(self, name, array):
        """The array must live as long as this."""
        # By equality: numpy has two types of 64 bits.
        self.type = next(number for number, kind in enumerate(TYPES) if kind and np.dtype(kind) == array.dtype)
        self.name, self.rank = name.encode(), array.ndim
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.data, self.bytes = array.ctypes.data, array.nbytes

    def copy(self):
        return np.frombuffer(ctypes.string_at(self.data, self.bytes), TYPES[self.type]).reshape(self.shape[:self.rank])


class Program:
    def __init__(self, build, path):
        self.library, self.handle = ctypes.CDLL(os.path.join(build, "lib", "libcleave_runtime.so")), ctypes.c_void_p()
        self.library.cleave_last_error.restype = ctypes.c_char_p
        self.library.cleave_output_count.restype = ctypes.c_size_t
        self.check(self.library.cleave_open(path.encode(), None, ctypes.byref(self.handle)))
        described = (Tensor * self.library.cleave_output_count(self.handle))()
        for index, tensor in enumerate(described):
            self.check(self.library.cleave_describe_output(self.handle, 0, ctypes.c_size_t(index), ctypes.byref(tensor)))
        self.outputs = [tensor.name.decode() for tensor in described]

    def check(self, status):
        if status:
            raise RuntimeError(self.library.cleave_last_error().decode())

    def run(self, inputs, wanted=None):
        wanted = self.outputs if wanted is None else wanted
        arrays = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        given, taken = (Tensor * len(arrays))(), (Tensor * len(wanted))()
        for tensor, (name, array) in zip(given, arrays.items()):
            tensor.fill(name, array)
        for tensor, name in zip(taken, wanted):
            tensor.name = name.encode()
        self.check(self.library.cleave_run(self.handle, given, ctypes.c_size_t(len(given)), taken, ctypes.c_size_t(len(taken))))
        return {name: tensor.copy() for name, tensor in zip(wanted, taken)}

    def reset(self):
        self.check(self.library.cleave_reset_states(self.handle))

    def close(self):
        """Again is nothing; other calls are errors from then on."""
        self.library.cleave_close(self.handle)
        self.handle = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
