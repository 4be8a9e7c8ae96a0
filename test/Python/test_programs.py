"""Programs: arrays in and out, states, threads, what is wrong."""
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import cleave
from conftest import run_onnxruntime

COLUMNS = cleave.Plan(mesh={"model": 2}, shard=[cleave.Rule(tensor="w1", dims=["_", "model"]), cleave.Rule(tensor="w2", dims=["model", "_"])])


@pytest.fixture(scope="module")
def program(mlp):
    with cleave.compile(mlp, plan=COLUMNS) as program:
        yield program


def test_two_ranks_give_what_onnxruntime_gives(program, mlp, x):
    want = run_onnxruntime(mlp, {"x": x})["y"]
    assert program.ranks == 2
    for outputs in (program.run({"x": x}), program.run(x=x), program.run(x)):
        np.testing.assert_allclose(outputs["y"], want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(program(x), want, rtol=1e-5, atol=1e-5)


def test_says_what_it_takes_and_gives(program):
    assert [(one.name, one.dtype, one.shape, one.type) for one in program.inputs] == [("x", np.float32, (4, 8), "f32")]
    assert [str(one) for one in program.outputs] == ["y: f32[4, 8]"]
    assert program.states == []
    assert "2 ranks" in repr(program) and "<table>" in program._repr_html_()


def test_its_report_is_that_of_two_ranks(program):
    report = program.report
    # A column-parallel product in front of a row-parallel one: one all_reduce of y, of which a rank sends 2 (n - 1) / n.
    assert report.ranks == 2 and report.mesh == {"model": 2}
    assert [one.kind for one in report.collectives] == ["all_reduce"]
    assert report.wire_bytes_per_rank == 4 * 8 * 4
    assert report.parameters.bytes == 2 * 8 * 16 * 4
    assert report.program.kernels > 0 and "all_reduce" in str(report) and "<table>" in report._repr_html_()


@pytest.mark.parametrize("layout", ["transposed", "strided", "reversed", "broadcast", "big-endian", "read-only", "unaligned"])
def test_takes_any_layout(program, mlp, x, layout):
    if layout == "transposed":
        given = np.asfortranarray(x)
    elif layout == "strided":
        given = np.zeros((8, 24), np.float32)[::2, ::3]
        given[...] = x
    elif layout == "reversed":
        given = np.ascontiguousarray(x[::-1])[::-1]
    elif layout == "broadcast":
        x = np.broadcast_to(x[:1], (4, 8))
        given = x
    elif layout == "big-endian":
        given = x.astype(">f4")
    elif layout == "read-only":
        given = x.copy()
        given.flags.writeable = False
    else:
        given = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 8)
    np.testing.assert_allclose(program(given), run_onnxruntime(mlp, {"x": np.ascontiguousarray(x)})["y"], rtol=1e-5, atol=1e-5)


def test_takes_lists_and_numbers(program, x):
    np.testing.assert_array_equal(program(x.tolist()), program(x))


def test_outputs_are_the_callers(program, x):
    first = program.run(x)["y"]
    kept = first.copy()
    program.run(-x)
    np.testing.assert_array_equal(first, kept)
    first[0, 0] = 7


class OfDLPack:
    """A producer that is not numpy's, as torch is one; `code` is DLPack's for its elements."""

    def __init__(self, array, code=None):
        self.array, self.code = array, code

    def __dlpack__(self, **_):
        capsule = self.array.__dlpack__()
        if self.code is not None:
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            ctypes.c_uint8.from_address(get(capsule, b"dltensor") + 20).value = self.code
        return capsule

    def __dlpack_device__(self):
        return 1, 0


def test_takes_dlpack(program, x):
    np.testing.assert_array_equal(program(OfDLPack(x)), program(x))
    np.testing.assert_array_equal(program(OfDLPack(x.T.copy().T)), program(x))


@pytest.fixture(scope="module")
def doubles(narrow):
    with cleave.compile(narrow, mesh="data=2", shard="x=[data, _]") as program:
        yield program


def test_bf16_is_that_of_ml_dtypes(doubles, x):
    given = x.astype(ml_dtypes.bfloat16)
    got = doubles(given)
    assert got.dtype == ml_dtypes.bfloat16 and doubles.inputs[0].type == "bf16"
    # Twice a number is exact.
    np.testing.assert_array_equal(got.astype(np.float32), 2 * given.astype(np.float32))


def test_bf16_goes_by_dlpack_both_ways(doubles, x):
    given = x.astype(ml_dtypes.bfloat16)
    got = doubles(OfDLPack(given.view(np.uint16), code=4))
    np.testing.assert_array_equal(got, doubles(given))
    back = cleave.to_dlpack(got)
    again = doubles(back)
    np.testing.assert_array_equal(again.astype(np.float32), 4 * given.astype(np.float32))


@pytest.mark.parametrize("name,code", [("float8_e4m3fn", 10), ("float8_e5m2", 12)])
def test_f8_goes_by_dlpack(name, code):
    values = np.arange(8, dtype=np.float32).astype(getattr(ml_dtypes, name))
    from cleave_runtime._arrays import to_numpy
    got = to_numpy(OfDLPack(values.view(np.uint8), code=code))
    assert got.dtype == values.dtype
    np.testing.assert_array_equal(to_numpy(cleave.to_dlpack(got)).astype(np.float32), values.astype(np.float32))


# What is wrong


@pytest.mark.parametrize("inputs,words", [
    ({}, "no value is given for x: f32[4, 8]"),
    ({"z": 1}, "there is no input 'z'"),
    ({"x": np.zeros((4, 8))}, "has the type float64, expected float32"),
    ({"x": np.zeros((4, 7), np.float32)}, "has the shape [4, 7], expected [4, 8]"),
    ({"x": np.zeros(32, np.float32)}, "has the shape [32]"),
    ({"x": np.array(["a"])}, "has the type"),
    ({"x": None}, "input 'x'"),
    ({"x": "words"}, "input 'x'"),
])
def test_wrong_inputs_are_errors_that_say_so(program, inputs, words):
    with pytest.raises(cleave.ArgumentError) as error:
        program.run(inputs)
    assert words in str(error.value)
    assert isinstance(error.value, ValueError) and error.value.kind == "arguments"


def test_wrong_outputs_and_too_many_inputs(program, x):
    with pytest.raises(cleave.ArgumentError, match="there is no output 'yy'; did you mean 'y'"):
        program.run(x, outputs=["yy"])
    with pytest.raises(cleave.ArgumentError, match="2 inputs are given, the program takes 1"):
        program.run(x, x)


def test_indices_out_of_range_are_errors(lookup):
    with cleave.compile(lookup, mesh="model=2", shard="table=[model, _]") as program:
        np.testing.assert_array_equal(program(np.array([0, 9, 3, 3]))[:, 0], [0, 36, 12, 12])
        with pytest.raises(cleave.ArgumentError, match="10"):
            program(np.array([0, 10, 3, 3]))
        # Nothing has changed.
        np.testing.assert_array_equal(program(np.array([1, 1, 1, 1]))[:, 0], [4, 4, 4, 4])


def test_a_closed_program_raises(mlp, x):
    with cleave.compile(mlp) as program:
        program.run(x)
    program.close()
    assert program.closed and "closed" in repr(program)
    for call in (lambda: program.run(x), program.reset, program.state_dict, lambda: program.ranks):
        with pytest.raises(cleave.ClosedError, match="the program is closed"):
            call()


def test_files_that_are_no_programs(tmp_path, mlp):
    with pytest.raises(cleave.Error) as error:
        cleave.load(mlp)
    assert error.value.kind == "program"
    with pytest.raises(cleave.Error, match="nowhere"):
        cleave.load(tmp_path / "nowhere.cleave")


# States


@pytest.fixture(scope="module")
def totals(sums):
    with cleave.compile(sums, mesh="data=2", shard="x=[data, _]", state={"past": "total"}) as program:
        yield program


def test_states_stay_in_the_ranks(totals):
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    assert [one.name for one in totals.inputs] == ["x"] and [one.name for one in totals.outputs] == ["y"]
    assert [one.name for one in totals.states] == ["past"]
    totals.reset()
    for times in (1, 2, 3):
        np.testing.assert_array_equal(totals(x), 2 * times * x)
    np.testing.assert_array_equal(totals.state_dict()["past"], 3 * x)
    outputs = totals.run(x, outputs=["total", "y"])
    np.testing.assert_array_equal(outputs["total"], 4 * x)
    # Given, it takes the place of what is there.
    np.testing.assert_array_equal(totals.run({"x": x, "past": -x})["y"], 0 * x)


def test_states_are_loaded_and_saved(totals, sums, tmp_path):
    x = np.ones((2, 8), np.float32)
    totals.load_state_dict({"past": 5 * x})
    np.testing.assert_array_equal(totals(x), 12 * x)
    totals.save_states(tmp_path / "s.safetensors")
    with cleave.compile(sums, state={"past": "total"}) as one:
        one.load_states(tmp_path / "s.safetensors")
        np.testing.assert_array_equal(one(x), 14 * x)
    with pytest.raises(cleave.ArgumentError, match="there is no state 'pass'; did you mean 'past'"):
        totals.load_state_dict({"pass": x})
    with pytest.raises(cleave.ArgumentError, match="expected"):
        totals.load_state_dict({"past": x[:1]})


def test_variants_pick_by_shape(batched):
    with cleave.compile(batched, mesh="model=2", shard="w=[_, model]", dims={"batch": [1, 4]}) as program:
        assert [inputs[0].shape for inputs, _ in program.variants] == [(1, 8), (4, 8)]
        for batch in (1, 4):
            x = np.random.default_rng(batch).standard_normal((batch, 8)).astype(np.float32)
            np.testing.assert_allclose(program(x), run_onnxruntime(batched, {"x": x})["y"], rtol=1e-5, atol=1e-5)
        with pytest.raises(cleave.ArgumentError):
            program(np.zeros((2, 8), np.float32))


# Files


def test_a_program_is_saved_and_loaded(program, mlp, x, tmp_path):
    for path in (tmp_path / "m.cleave", tmp_path / "deep" / "er" / "m.cleave"):
        path.parent.mkdir(parents=True, exist_ok=True)
        program.save(path)
        with cleave.load(path) as loaded:
            np.testing.assert_array_equal(loaded(x), program(x))


def test_weights_within_the_program_need_no_other_file(mlp, x, tmp_path):
    want = run_onnxruntime(mlp, {"x": x})["y"]
    copy = tmp_path / "m.onnx"
    copy.write_bytes(open(mlp, "rb").read())
    cleave.compile(copy, tmp_path / "m.cleave", embed_weights=True).close()
    copy.unlink()
    with cleave.load(tmp_path / "m.cleave") as program:
        np.testing.assert_allclose(program(x), want, rtol=1e-5, atol=1e-5)


def test_files_of_a_program_go_with_it(mlp):
    program = cleave.compile(mlp)
    folder = os.path.dirname(program.path)
    assert os.path.exists(folder)
    program.close()
    del program
    assert not os.path.exists(folder)


# Threads, processes, signals


def test_threads_share_a_program(program, x):
    def work(seed):
        mine = np.random.default_rng(seed).standard_normal((4, 8)).astype(np.float32)
        want = program(mine)
        return all(np.array_equal(program(mine), want) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_threads_compile_at_once(mlp, batched, x):
    def work(number):
        with cleave.compile(mlp, mesh=f"model={2 if number % 2 else 4}", plan=None, shard=["w1=[_, model]", "w2=[model, _]"]) as program:
            return program(x)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(8)))
    for result in results:
        np.testing.assert_allclose(result, run_onnxruntime(mlp, {"x": x})["y"], rtol=1e-5, atol=1e-5)


def test_close_waits_for_a_call_of_another_thread(mlp, x):
    program = cleave.compile(mlp, plan=COLUMNS)
    failures = []

    def work():
        try:
            while True:
                program.run(x)
        except cleave.ClosedError:
            pass
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    [thread.start() for thread in threads]
    time.sleep(0.1)
    program.close()
    [thread.join(10) for thread in threads]
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_another_process_is_told_to_open_its_own(program, x):
    pid = os.fork()
    if pid == 0:
        try:
            program.run(x)
        except cleave.Error as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


INTERRUPTED = """
import sys, time, numpy as np, cleave
program = cleave.compile(sys.argv[1], mesh="data=2", shard="x=[data, _]")
x = np.ones((64, 64), np.float32)
program.run(n=3, x=x)
print("begins", flush=True)
start = time.time()
try:
    program.run(n=1 << 40, x=x)
except KeyboardInterrupt:
    print("interrupted", flush=True)
try:
    program.run(n=3, x=x)
except cleave.Error as error:
    print(error.kind, "interrupted" in str(error), error.__notes__, flush=True)
program.reopen()
print("again", float(program.run(n=0, x=x)["y"][0, 0]), flush=True)
"""


def test_ctrl_c_stops_a_call(loop):
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, loop], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "begins"
    time.sleep(0.5)
    start = time.time()
    child.send_signal(signal.SIGINT)
    try:
        lines = child.communicate(timeout=60)[0].splitlines()
    finally:
        child.kill()
    assert child.returncode == 0
    assert lines[0] == "interrupted" and lines[1].startswith("ranks True") and "reopen" in lines[1] and lines[2] == "again 1.0"
    assert time.time() - start < 15
