"""Training of nets of integers: losses and weights have equal bits on every mesh, on threads, over TCP, with MPI, and on emulated CUDA devices.

    bits.py BUILD_DIR [CASE...]

Numbers are f64 that hold integers, and stay so: weights are read modulo 4, values between layers are cut off at 3, the slope of an absolute
difference is a sign, and the rate of plain SGD undoes the mean of the loss, over a power of two. So no sum is rounded, in whatever order ranks add
it, and a gradient that is lost, added twice or late is seen however small. Kinks are comparisons, which are never ties.

The losses of one device are those of numpy where the net is written once more (`dense`, `experts`), backward by hand.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

STEPS, MODULUS, MOST = 20, 4, 3
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]


def integers(*shape, seed=0, most=3):
    return np.random.default_rng([seed, *shape]).integers(-most, most + 1, shape).astype(np.float64)


def cut(name, x):
    """ONNX text: `x` where it is less than 4 far from zero, and 3 or -3 beyond. Both comparisons are exact, and none is a tie."""
    return f"{name}_l = Less({x}, four) {name}_u = Where({name}_l, {x}, most) {name}_g = Greater({name}_u, low) {name} = Where({name}_g, {name}_u, least) "


NUMBERS = {"four": 4.0, "most": 3.0, "low": -4.0, "least": -3.0}


def read(name):
    return f"{name}_r = Mod<fmod = 1>({name}, four) "


#===--- Nets: text, inputs, labels, weights -----------------------------------===#

def dense():
    text = ("f (double[8, 16] x) => (double[8, 8] y) { " + read("w") + read("v") + "h = MatMul(x, w_r) k = Add(h, b) r = Relu(k) " + cut("a", "r") +
            "y = MatMul(a, v_r) }")
    return dict(text=text, inputs={"x": integers(8, 16)}, labels=integers(8, 8, seed=1, most=20), weights={"w": integers(16, 12), "b": integers(12), "v": integers(12, 8)})


def tokens():
    """A block of attention whose weights are its scores, cut off, and a perceptron, between a table and its transpose."""
    text = ("f (int64[4, 8] ids) => (double[4, 8, 16] y) { " + "".join(map(read, ("table", "wq", "wk", "wv", "wo", "w1", "w2"))) + "e = Gather(table_r, ids) " +
            "".join(f"{n}_m = MatMul(e, w{n}_r) {n}_h = Reshape({n}_m, heads) {n} = Transpose<perm = [0, 2, 1, 3]>({n}_h) " for n in "qkv") +
            cut("qc", "q") + cut("kc", "k") + "kt = Transpose<perm = [0, 1, 3, 2]>(kc) qk = MatMul(qc, kt) " + cut("s", "qk") + "p = Mul(s, causal) pv = MatMul(p, v) " + cut("c", "pv") +
            "ct = Transpose<perm = [0, 2, 1, 3]>(c) cj = Reshape(ct, joined) o = MatMul(cj, wo_r) z = Add(e, o) " + cut("zc", "z") +
            "f1 = MatMul(zc, w1_r) fr = Relu(f1) " + cut("fc", "fr") + "f2 = MatMul(fc, w2_r) g = Add(zc, f2) " + cut("gc", "g") +
            "turned = Transpose<perm = [1, 0]>(table_r) y = MatMul(gc, turned) }")
    weights = {"table": integers(16, 16), **{name: integers(16, 16, seed=i) for i, name in enumerate(("wq", "wk", "wv", "wo"))}, "w1": integers(16, 32), "w2": integers(32, 16)}
    return dict(text=text, inputs={"ids": np.random.default_rng(3).integers(0, 16, (4, 8))}, labels=integers(4, 8, 16, seed=1, most=20), weights=weights,
                also={"causal": np.tril(np.ones((8, 8))), "heads": np.array([0, 0, 2, 8]), "joined": np.array([0, 0, 16])})


def experts():
    text = ("f (double[16, 8] x, int64[16] route) => (double[16, 8] y) { " + read("w") + read("v") + "hot = OneHot<axis = 0>(route, count, marks) m = Unsqueeze(hot, last) "
            "h = MatMul(x, w_r) r = Relu(h) " + cut("a", "r") + "o = MatMul(a, v_r) mo = Mul(o, m) y = ReduceSum<keepdims = 0>(mo, first) }")
    return dict(text=text, inputs={"x": integers(16, 8), "route": np.arange(16) * 7 % 4}, labels=integers(16, 8, seed=1, most=20),
                weights={"w": integers(4, 8, 16), "v": integers(4, 16, 8)},
                also={"count": np.array(4), "marks": np.array([0.0, 1.0]), "last": np.array([2]), "first": np.array([0])})


def images():
    text = ("f (double[4, 2, 8, 8] x) => (double[4, 4] y) { " + read("k1") + read("k2") + read("head") + "h = Conv<pads = [1, 1, 1, 1]>(x, k1_r) " + cut("a", "h") +
            "s = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(a, k2_r) " + cut("t", "s") + "p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(t) q = Reshape(p, flat) "
            "y = MatMul(q, head_r) }")
    return dict(text=text, inputs={"x": integers(4, 2, 8, 8)}, labels=integers(4, 4, seed=1, most=20),
                weights={"k1": integers(4, 2, 3, 3), "k2": integers(8, 4, 3, 3), "head": integers(32, 4)}, also={"flat": np.array([0, 32])})


def transposed():
    """Down and up again, by strides of two: gradients of both convolutions go by phases."""
    text = ("f (double[4, 2, 8, 8] x) => (double[4, 2, 8, 8] y) { " + read("k1") + read("k2") + "h = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, k1_r) " + cut("a", "h") +
            "y = ConvTranspose<pads = [1, 1, 1, 1], strides = [2, 2]>(a, k2_r) }")
    return dict(text=text, inputs={"x": integers(4, 2, 8, 8)}, labels=integers(4, 2, 8, 8, seed=1, most=20), weights={"k1": integers(4, 2, 3, 3), "k2": integers(4, 2, 4, 4)})


NETS = {net.__name__: net() for net in (dense, tokens, experts, images, transposed)}

#===--- Meshes ----------------------------------------------------------------===#

# By `cleave train`; others run a program that was compiled before.
TRAINED = {"host": [], "emulated": ["--device", "cuda-emulated"]}
ALL = ("threads", "processes", "mpirun", "emulated")


def zero(stage, axis="data"):
    return {"zero": f"{{axis: {axis}, stage: {stage}, min_bytes: 0}}"}


def case(net, mesh="one: 1", rules=(), uneven=False, stages="", ways=tuple(TRAINED), **train):
    return dict(net=net, mesh=mesh, rules=rules, uneven=uneven, stages=stages, ways=ways, train=train)


def batch(net, axes):
    """The batch dim of all inputs and labels along `axes`."""
    of = NETS[net]
    return [(name, f"[{', '.join([axes, *['_'] * (array.ndim - 1)])}]") for name, array in (*of["inputs"].items(), ("labels", of["labels"]))]


BLOCK = [(name, "[_, model]") for name in ("wq", "wk", "wv", "w1")] + [("wo", "[model, _]"), ("w2", "[model, _]")]
SEQUENCE = [(name, "[_, model, _]") for name in ("zc", "gc")]
CASES = {
    **{f"{net}, data parallel on {ranks}": case(net, f"data: {ranks}", batch(net, "data"), ways=ALL if ranks == 2 else tuple(TRAINED)) for net in NETS for ranks in (2, 4)},
    **{f"{net}, three ranks": case(net, "data: 3", batch(net, "data"), uneven=True, ways=ALL if net == "dense" else tuple(TRAINED)) for net in NETS},
    **{f"{net}, ZeRO-{stage}": case(net, "data: 2", batch(net, "data"), **zero(stage), ways=ALL if net == "tokens" else tuple(TRAINED)) for net in NETS for stage in (1, 2, 3)},
    **{f"{net}, hybrid sharding": case(net, "replica: 2, shard: 2", batch(net, "[replica, shard]"), **zero(3, "shard"), ways=ALL if net == "tokens" else tuple(TRAINED)) for net in NETS},
    **{f"{net} in microbatches": case(net, microbatches=2) for net in NETS}, **{f"{net}, ZeRO-2 in microbatches": case(net, "data: 2", batch(net, "data"), microbatches=2, **zero(2)) for net in NETS},
    # Of a microbatch devices have different numbers of samples: those of `tokens` and `images` are two on three devices.
    **{f"{net}, three ranks in microbatches": case(net, "data: 3", batch(net, "data"), uneven=True, microbatches=2, ways=ALL if net == "tokens" else tuple(TRAINED)) for net in NETS},
    **{f"{net}, ZeRO-{stage} on three in microbatches": case(net, "data: 3", batch(net, "data"), uneven=True, microbatches=2, **zero(stage)) for net, stage in (("dense", 2), ("tokens", 3))},
    "tokens, two stages of three": case("tokens", "stage: 2, data: 3", batch("tokens", "data"), uneven=True, stages="microbatches: 2, schedule: 1f1b", ways=ALL),
    "dense, two stages of three, zb-h1, ZeRO-2": case("dense", "stage: 2, data: 3", batch("dense", "data"), uneven=True, stages="microbatches: 2, schedule: zb-h1", **zero(2)),
    "dense, two ways of three": case("dense", "stage: 2, data: 3", batch("dense", "data"), uneven=True, stages="microbatches: 4, schedule: dualpipe"),
    "dense, tensor parallel": case("dense", "model: 4", [("w", "[_, model]"), ("v", "[model, _]")], ways=ALL),
    "dense, tensor parallel on five": case("dense", "model: 5", [("w", "[_, model]"), ("v", "[model, _]")], uneven=True),
    "dense, both, ZeRO-1": case("dense", "data: 2, model: 2", [*batch("dense", "data"), ("w", "[_, model]"), ("v", "[model, _]")], **zero(1), ways=ALL),
    "tokens, tensor parallel": case("tokens", "model: 2", BLOCK, ways=ALL), "tokens, vocabulary parallel": case("tokens", "model: 2", [("table", "[model, _]"), *BLOCK]),
    "tokens, tensor and sequence parallel": case("tokens", "model: 2", BLOCK + SEQUENCE, ways=ALL),
    **{f"tokens, context parallel on {ranks}": case("tokens", f"seq: {ranks}", [("ids", "[_, seq]"), ("labels", "[_, seq, _]")], ways=ALL if ranks == 2 else tuple(TRAINED)) for ranks in (2, 4)},
    "tokens, context parallel on three": case("tokens", "seq: 3", [("ids", "[_, seq]"), ("labels", "[_, seq, _]")], uneven=True),
    "tokens, data and tensor parallel, ZeRO-3": case("tokens", "data: 2, model: 2", batch("tokens", "data") + BLOCK, **zero(3), ways=ALL),
    "tokens, data and context parallel": case("tokens", "data: 2, seq: 2", [("ids", "[data, seq]"), ("labels", "[data, seq, _]")]),
    "tokens, two stages": case("tokens", "stage: 2", stages="microbatches: 4", ways=ALL),
    "tokens, two stages, zb-h1": case("tokens", "stage: 2", stages="microbatches: 4, schedule: zb-h1"), "tokens, blocks again": case("tokens", recompute="blocks"),
    # Kept values wait in the memory of the device's host, which the host's own programs have none of.
    **{f"{net}, offloaded": case(net, ways=("emulated",), offload='["*"]') for net in NETS},
    **{f"{net}, offloaded in microbatches": case(net, ways=("emulated",), microbatches=2, offload='["*"]') for net in ("tokens", "images")},
    "tokens, ZeRO-3, offloaded": case("tokens", "data: 2", batch("tokens", "data"), ways=("emulated",), offload='["*"]', **zero(3)),
    "tokens, tensor and sequence parallel, offloaded": case("tokens", "model: 2", BLOCK + SEQUENCE, ways=("emulated",), offload='["*"]'),
    "tokens, some again, offloaded": case("tokens", ways=("emulated",), recompute="cheap", offload='["*"]'),
    "tokens, two stages, offloaded": case("tokens", "stage: 2", stages="microbatches: 4", ways=("emulated",), offload='["*"]'),
    "tokens, two stages, zb-h1, offloaded": case("tokens", "stage: 2", stages="microbatches: 4, schedule: zb-h1", ways=("emulated",), offload='["*"]'),
    "dense, two ways, offloaded": case("dense", "stage: 2", stages="microbatches: 4, schedule: dualpipe", ways=("emulated",), offload='["*"]'),
    "experts, expert parallel": case("experts", "expert: 4", [("w", "[expert, _, _]"), ("v", "[expert, _, _]")], ways=ALL),
    "experts, data and expert parallel": case("experts", "data: 2, expert: 2", [*batch("experts", "data"), ("w", "[expert, _, _]"), ("v", "[expert, _, _]")]),
    "experts over data": case("experts", "data: 4", [*batch("experts", "data"), ("w", "[data, _, _]"), ("v", "[data, _, _]")]),
    "images, rows": case("images", "rows: 2", [("x", "[_, _, rows, _]")], ways=ALL), "images, channels": case("images", "model: 2", [("k1", "[model, _, _, _]"), ("k2", "[_, model, _, _]")]),
    "transposed, rows": case("transposed", "rows: 2", [("x", "[_, _, rows, _]"), ("labels", "[_, _, rows, _]")], ways=ALL),
    "transposed, channels": case("transposed", "model: 2", [("k1", "[model, _, _, _]"), ("k2", "[model, _, _, _]")]),
    "images, data and rows, ZeRO-1": case("images", "data: 2, rows: 2", [("x", "[data, _, rows, _]"), ("labels", "[data, _]")], **zero(1)),
}


def save_plan(path, of):
    net = NETS[of["net"]]
    lines = [f"mesh: {{{of['mesh']}}}"] + ["uneven: true"] * of["uneven"] + [f"pipeline: {{axis: stage, {of['stages']}}}"] * bool(of["stages"]) + ["shard:"] * bool(of["rules"])
    lines += [f"  - {{tensor: {name}, dims: {dims}}}" for name, dims in of["rules"]]
    train = {"loss": "{kind: l1, of: y}", "optimizer": "sgd", "rate": float(net["labels"].size), "only": f"[{', '.join(net['weights'])}]", **of["train"]}
    with open(path, "w") as file:
        file.write("\n".join(lines + ["train:", *(f"  {key}: {value}" for key, value in train.items())]) + "\n")


#===--- numpy -----------------------------------------------------------------===#

def cut_off(x):
    return np.where(np.abs(x) < 4, x, np.sign(x) * MOST), np.abs(x) < 4


def train_dense(net):
    (x,), t = net["inputs"].values(), net["labels"]
    w, b, v = (array.copy() for array in net["weights"].values())
    for _ in range(STEPS):
        k = x @ np.fmod(w, MODULUS) + b
        a, inside = cut_off(np.maximum(k, 0))
        y = a @ np.fmod(v, MODULUS)
        yield np.abs(y - t).mean()
        s = np.sign(y - t)
        d = s @ np.fmod(v, MODULUS).T * inside * (k > 0)
        v -= a.T @ s
        w -= x.T @ d
        b -= d.sum(0)
    yield {"w": w, "b": b, "v": v}


def train_experts(net):
    (x, route), t = net["inputs"].values(), net["labels"]
    w, v = (array.copy() for array in net["weights"].values())
    for _ in range(STEPS):
        loss = 0
        for expert in range(len(w)):
            mine = route == expert
            h = x[mine] @ np.fmod(w[expert], MODULUS)
            a, inside = cut_off(np.maximum(h, 0))
            y = a @ np.fmod(v[expert], MODULUS)
            loss += np.abs(y - t[mine]).sum()
            s = np.sign(y - t[mine])
            d = s @ np.fmod(v[expert], MODULUS).T * inside * (h > 0)
            v[expert] -= a.T @ s
            w[expert] -= x[mine].T @ d
        yield loss / t.size
    yield {"w": w, "v": v}


PEERS = {"dense": train_dense, "experts": train_experts}

#===--- The suite -------------------------------------------------------------===#


def read_safetensors(path):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(length)), file.read()
    return {name: data[slice(*of["data_offsets"])] for name, of in header.items() if name != "__metadata__"}


class Bits:
    def __init__(self, build, folder):
        self.build, self.folder, self.alone, self.lock, self.compared = build, folder, {}, threading.Lock(), 0
        for name, net in NETS.items():
            model = parser.parse_model('<ir_version: 10, opset_import: ["": 18]> ' + net["text"])
            numbers = {**net["weights"], **net.get("also", {}), **{name: np.array(value) for name, value in NUMBERS.items()}}
            model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in numbers.items())
            onnx.save(model, self.at(name + ".onnx"))
            np.savez(self.at(name + ".npz"), **net["inputs"], labels=net["labels"])

    def at(self, name):
        return os.path.join(self.folder, name)

    def call(self, stem, command):
        """(losses, tensors) of 20 steps."""
        log, saved = self.at(stem + ".jsonl"), self.at(stem + ".safetensors")
        done = subprocess.run([*command, "--steps", str(STEPS), "--order", "given", "--log", log, "--save", saved], capture_output=True, text=True, timeout=120, cwd=self.folder)
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr[-500:]}")
        with open(log) as file:
            return [json.loads(line)["loss"] for line in file], read_safetensors(saved)

    def train(self, name, of):
        """By the way it was run: what `call` gives."""
        stem, net = name.replace(" ", "_").replace(",", ""), of["net"]
        plan, program = self.at(stem + ".yaml"), self.at(stem + ".cleave")
        save_plan(plan, of)
        ways = [way for way in of["ways"] if way not in TRAINED and (way != "mpirun" or shutil.which("mpirun"))]
        train = [f"{self.build}/bin/cleave", "train", self.at(net + ".onnx"), "--plan", plan, "--data", self.at(net + ".npz"), "--quiet"]
        found = {way: self.call(f"{stem}.{way}", [*train, *words]) for way, words in TRAINED.items() if way in of["ways"]}
        if not ways:
            return found
        done = harness.cleave(self.build, "compile", self.at(net + ".onnx"), "--plan", plan, "--train", "-o", program, "--quiet")
        if done.returncode:
            raise RuntimeError(f"compile: exit {done.returncode}: {done.stderr[-500:]}")
        ranks = int(np.prod([int(axis.split(":")[1]) for axis in of["mesh"].split(",")]))
        before, behind = {"mpirun": [*MPIRUN, str(ranks)]}, {"processes": ["--local"]}
        return {**found, **{way: self.call(f"{stem}.{way}", [*before.get(way, []), f"{self.build}/bin/cleave-run", program, "--data", self.at(net + ".npz"), *behind.get(way, [])]) for way in ways}}

    def check_alone(self, net):
        self.alone[net] = losses, tensors = self.train(net, case(net, ways=("host",)))["host"]
        numbers = {name: np.frombuffer(tensors[name]).reshape(value.shape) for name, value in NETS[net]["weights"].items()}
        for name, value in numbers.items():
            if not (np.array_equal(value, np.round(value)) and np.abs(value).max() < 2**40):
                return f"{name} does not hold integers"
            if np.array_equal(value, NETS[net]["weights"][name]):
                return f"{name} has not changed"
        if net in PEERS:
            *want, weights = PEERS[net](NETS[net])
            wrong = [name for name, value in weights.items() if not np.array_equal(value, numbers[name])]
            if losses != want or wrong:
                return f"numpy has other losses, {want} for {losses}, or weights: {wrong}"
        return "" if len(set(losses)) > STEPS // 2 else f"the losses hardly change: {losses}"

    def problem(self, name):
        of = CASES[name]
        with self.lock:
            if of["net"] not in self.alone:
                wrong = self.check_alone(of["net"])
                if wrong:
                    return f"one device: {wrong}"
        want, weights = self.alone[of["net"]]
        for way, (losses, tensors) in self.train(name, of).items():
            if losses != want:
                first = next((i for i, pair in enumerate(zip(losses, want)) if pair[0] != pair[1]), min(len(losses), len(want)))
                return f"{way}: {len(losses)} losses, of step {first} {losses[first:first + 1]}, one device {want[first:first + 1]}"
            if tensors.keys() != weights.keys():
                return f"{way}: saved {sorted(tensors)}, one device {sorted(weights)}"
            other = [key for key in weights if tensors[key] != weights[key]]
            if other:
                return f"{way}: other bits of {', '.join(other)}"
            with self.lock:
                self.compared += len(losses) + sum(len(tensors[key]) // 8 for key in tensors)
        return ""


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with tempfile.TemporaryDirectory() as folder:
        bits = Bits(build, folder)
        code = harness.run(cases, bits.problem)
    # In front of the closing line it would be read as one.
    print(f"{bits.compared} numbers had equal bits", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
