"""The compiler, as a library of C++ (MLIR and LLVM inside). `cleave` is the package to use; this is what it asks, and the command `cleave`."""
import signal
import sys

from . import _native


def main() -> None:
    """The command `cleave`."""
    # As of any program: whoever interrupts it ends it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = _native.main(["cleave", *sys.argv[1:]])
    sys.stdout.flush()
    # What the command leaves behind goes with the process.
    import os
    os._exit(code)
