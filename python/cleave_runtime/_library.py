"""`cleave/runtime.h` by ctypes. A call gives the interpreter's lock back while it lasts."""
from __future__ import annotations

import ctypes
import os

from ._errors import ArgumentError, ClosedError, Error, InUseError

FOLDER = os.path.dirname(os.path.abspath(__file__))
# By the numbers of `cleave_status`.
KINDS = ["", "program", "machine", "weights", "memory", "arguments", "ranks", "in use"]


class CTensor(ctypes.Structure):
    """`cleave_tensor`"""
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int32), ("rank", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class COptions(ctypes.Structure):
    """`cleave_options`"""
    _fields_ = [("weights_folder", ctypes.c_char_p), ("record_folder", ctypes.c_char_p), ("deadline_seconds", ctypes.c_double),
                ("silence_seconds", ctypes.c_double), ("memory_limit", ctypes.c_uint64), ("ranks", ctypes.c_int),
                ("pin_threads", ctypes.c_int), ("catch_crashes", ctypes.c_int), ("no_verify", ctypes.c_int)]


def _open() -> ctypes.CDLL:
    library = ctypes.CDLL(os.path.join(FOLDER, "libcleave_runtime.so"))
    handle, size, tensors, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(CTensor), ctypes.c_char_p
    for name, result, arguments in [
        ("options_init", None, [ctypes.POINTER(COptions)]),
        ("open", ctypes.c_int, [text, ctypes.POINTER(COptions), ctypes.POINTER(handle)]),
        ("close", None, [handle]),
        ("run_entry", ctypes.c_int, [handle, text, tensors, size, tensors, size]),
        ("stop", None, [handle, text]),
        ("reset_states", ctypes.c_int, [handle]),
        ("save", ctypes.c_int, [handle, text]),
        ("load", ctypes.c_int, [handle, text, ctypes.c_int]),
        ("last_error", text, []),
        ("variant_count", size, [handle]),
        ("input_count", size, [handle]),
        ("output_count", size, [handle]),
        ("state_count", size, [handle]),
        ("describe_input", ctypes.c_int, [handle, size, size, tensors]),
        ("describe_output", ctypes.c_int, [handle, size, size, tensors]),
        ("describe_state", ctypes.c_int, [handle, size, tensors]),
        ("state_output", text, [handle, size]),
        ("rank_count", ctypes.c_uint32, [handle]),
        ("rank", ctypes.c_uint32, [handle]),
        ("load_seconds", ctypes.c_double, [handle]),
        ("run_seconds", ctypes.c_double, [handle]),
        ("peak_bytes", ctypes.c_uint64, [handle]),
        ("version", text, []),
    ]:
        function = getattr(library, "cleave_" + name)
        function.restype, function.argtypes = result, arguments
    return library


library = _open()


def version() -> str:
    return library.cleave_version().decode()


def check(status: int) -> None:
    """Raises what a status means, with the line that the library has for it."""
    if status == 0:
        return
    message = library.cleave_last_error().decode(errors="replace")
    if KINDS[status] == "arguments":
        raise ClosedError() if message == "the program is closed" else ArgumentError(message)
    raise InUseError(message) if KINDS[status] == "in use" else Error(message, KINDS[status])
