"""Ctrl-C: calls of the compiler end, and are heard whenever the signal comes."""
import signal
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper

import cleave
import cleave_compiler._native
from conftest import make_model

SHARD = ["w1=[_, model]", "w2=[model, _]"]


INTERRUPTED = """
import sys, threading, cleave
beginning = threading.Event()
inner = cleave._compile._native.compile
def told(*words):
    print("begins", flush=True)
    return inner(*words)
cleave._compile._native.compile = told
try:
    cleave.compile(sys.argv[1], dims={"n": list(range(1, 300))})
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
cleave._compile._native.compile = inner
with cleave.compile(sys.argv[1], dims={"n": 4}) as program:
    print("again", program.ranks, flush=True)
"""


def interrupt(script, *arguments):
    """The process of a script that gets Ctrl-C once it says that it begins, and the lines that it prints from then on."""
    child = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "begins"
    child.send_signal(signal.SIGINT)
    try:
        return child, child.communicate(timeout=120)[0].splitlines()
    finally:
        child.kill()


def test_ctrl_c_ends_a_compilation(tmp_path):
    """Hundreds of variants take long; the interpreter ends when the one that is being made has."""
    weight = np.ones((16, 16), np.float32)
    model = make_model(tmp_path / "n.onnx", [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])],
                       [("x", TensorProto.FLOAT, ["n", 16])], [("y", TensorProto.FLOAT, ["n", 16])], [("w", weight)])
    child, lines = interrupt(INTERRUPTED, model)
    assert lines == ["interrupted", "again 1"] and child.returncode == 0


ENDLESS = """
import sys, cleave
from cleave_compiler import _native
inner = _native.check
def told(*words):
    print("begins", flush=True)
    answer = inner(*words)
    print("ends", "interrupted" in answer, flush=True)
    return answer
_native.check = told
try:
    cleave.check(sys.argv[1], mesh="model=2", shard=["x=[model, _]"], inputs=sys.argv[2])
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


UNHEARD = """
import signal, threading, time
from cleave._options import interruptible
from cleave_runtime._program import Caller
ended = threading.Event()
def work():
    # To this thread, once the caller sleeps: that is not woken, as by a signal that comes just before it does.
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    ended.wait()
for call in (interruptible, Caller().call):
    ended.clear()
    try:
        call(work, ended.set)
        print("done", flush=True)
    except KeyboardInterrupt:
        print("interrupted", ended.is_set(), flush=True)
"""


def test_a_signal_that_does_not_wake_the_caller_is_heard():
    done = subprocess.run([sys.executable, "-c", UNHEARD], capture_output=True, text=True, timeout=120)
    assert (done.stdout.splitlines(), done.returncode) == (["interrupted True"] * 2, 0), done.stderr


def test_ctrl_c_ends_a_check(loop, tmp_path):
    """Steps of a loop that nobody waits for: the interpreter ends, since the evaluator looks whether anybody does."""
    np.savez(tmp_path / "in.npz", n=np.int64(2**40), x=np.ones((64, 64), np.float32))
    child, lines = interrupt(ENDLESS, loop, tmp_path / "in.npz")
    # The call's own end comes after, from its thread.
    assert sorted(lines) == ["ends True", "interrupted"] and child.returncode == 0


class Unwanted(cleave_compiler._native.Stop):
    """Of a call that is interrupted before it begins."""
    def __init__(self):
        super().__init__()
        self.stop()


@pytest.mark.parametrize("ask", [
    lambda model, **how: cleave.compile(model, **how), lambda model, **how: cleave.shard(model, **how),
    lambda model, **how: cleave.check(model, **how), lambda model, **how: cleave.explain(model, **how),
    lambda model, **how: cleave.page(model, **how), lambda model, **how: cleave.bench(model, **how),
    lambda model, **how: cleave.plan(model, 2),
], ids=["compile", "shard", "check", "explain", "page", "bench", "plan"])
def test_a_call_that_is_interrupted_ends(ask, mlp, monkeypatch):
    monkeypatch.setattr(cleave_compiler._native, "Stop", Unwanted)
    with pytest.raises(cleave.Error, match="interrupted") as caught:
        ask(mlp, mesh="model=2", shard=SHARD)
    assert caught.value.kind == "run"
