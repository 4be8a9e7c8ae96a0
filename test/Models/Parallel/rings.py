"""Attention whose keys and values go round, on random shapes, against the formula of attention in numpy.

Usage: rings.py BUILD_DIR [--count=N] [NAME...]

A case is one attention: its mesh, axes that cut the tokens, heads, sizes, masks, windows, element type, and who runs it (evaluator, program, CUDA
device as this machine plays it) are drawn by its number. Half of the cases name the cut of the arguments and ask for `attention: ring`, the others say
which values are gathered, so that windows do not take their own way. The result must be that of attention in f64 here, and each of keys and values
must be passed on as often as there are further steps at which some rank sees something of its block: p - 1 times on p ranks if nothing is hidden.

One case in three is differentiated as well: then gradients are compared with their formulas, in f64, and on the way back keys and values are passed on
as often as before, their gradients once more than that. There, too, ranks may have uneven shards, and windows hide keys.
"""
import json
import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

sys.path.insert(1, os.path.dirname(os.path.dirname(sys.path[0])))
import harness

MESHES = [({"x": 2}, ["x"]), ({"x": 3}, ["x"]), ({"x": 4}, ["x"]), ({"x": 5}, ["x"]), ({"x": 8}, ["x"]), ({"x": 2, "y": 2}, ["x"]),
          ({"x": 2, "y": 2}, ["x", "y"]), ({"y": 2, "x": 3}, ["y", "x"]), ({"x": 4, "y": 2}, ["x", "y"]), ({"x": 8}, ['"x":(1)4']),
          ({"x": 8}, ['"x":(2)4'])]
TOLERANCES = {"f32": 2e-5, "f64": 1e-12, "f16": 4e-3, "bf16": 3e-2}
EXECUTORS = [[], [], ["--executor", "program"], ["--device", "cuda-emulated"], ["--executor", "program", "--precision", "bf16"]]


class Case:
    def __init__(self, number):
        self.random = random = np.random.default_rng(number)
        pick = lambda *choices: choices[random.integers(len(choices))]
        self.mesh, axes = MESHES[random.integers(len(MESHES))]
        self.axes = ", ".join(axis if ":" in axis else f'"{axis}"' for axis in axes)
        self.ranks = int(axes[0][-1]) if ":" in axes[0] else int(np.prod([self.mesh[axis] for axis in axes]))
        self.element = pick("f32", "f32", "f32", "f64", "f16", "bf16")
        self.run = EXECUTORS[random.integers(len(EXECUTORS))]
        self.batch, self.kv, self.group = pick(1, 2), pick(1, 2), pick(1, 1, 2, 4)
        self.size, self.value_size = pick(4, 8, 16), pick(4, 8, 12)
        # Devices go by tiles where there are enough rows for one.
        many = pick(1, 6) if "cuda-emulated" in self.run and self.ranks < 5 else 1
        shard = int(random.integers(1, 9)) * many # and two tokens at least: one is no sequence
        self.tokens = shard * self.ranks - (int(random.integers(0, shard * self.ranks // 2 + 1)) if random.random() < 0.4 else 0)
        self.tokens = max(self.tokens, 2)
        self.uneven = self.tokens % self.ranks != 0
        # Keys of the past, or fewer, so that places of queries and keys lie otherwise.
        self.keys = self.tokens if random.random() < 0.7 else self.ranks * int(random.integers(1, 12)) * many
        self.shard = -(-self.keys // self.ranks)
        self.causal = bool(random.random() < 0.6)
        self.written = bool(random.random() < 0.5)
        self.left = int(random.integers(0, self.keys + 1)) if self.written and random.random() < 0.5 else None
        self.right = int(random.integers(0, self.keys + 1)) if self.written and not self.causal and random.random() < 0.3 else None
        self.offset = pick(0, 0, self.keys - self.tokens, 3, -2) if self.causal or self.left is not None else 0
        if not self.sees().any(): # a band beyond all keys, which is brought near
            self.offset, self.left = 0, None
        self.softcap = pick(0.0, 0.0, 2.0)
        self.scale = self.size ** -0.5
        # One in three is a step: the gradients of keys and values go round with them on the way back.
        self.back = number % 3 == 0 and self.ranks < 8 and all(":" not in axis for axis in axes)
        self.written &= not self.back
        self.mask = pick(None, None, "bool", "keys", "added")
        if self.uneven and self.mask == "added":
            self.mask = "bool"

    def arrays(self):
        heads, draw = self.kv * self.group, lambda *shape: self.random.standard_normal(shape)
        arrays = {"q": draw(self.batch, heads, self.tokens, self.size), "k": draw(self.batch, self.kv, self.keys, self.size),
                  "v": draw(self.batch, self.kv, self.keys, self.value_size)}
        if self.back:
            arrays["w"] = draw(self.batch, heads, self.tokens, self.value_size)
        if self.mask == "bool":
            arrays["m"] = self.random.random((1, heads, self.tokens, self.keys)) < 0.6
        elif self.mask == "keys":
            arrays["m"] = self.random.random((self.batch, 1, 1, self.keys)) < 0.6
        elif self.mask == "added":
            arrays["m"] = draw(self.tokens, self.keys)
            if self.back and not self.causal and self.element in ("f32", "f64"):
                arrays["m"][0] = -3e38 # a row that sees nothing but excluded keys, all alike
        for name, array in arrays.items():
            arrays[name] = array if array.dtype == bool else self.round(array)
        return arrays

    def round(self, array):
        if self.element == "bf16":
            return array.astype(ml_dtypes.bfloat16)
        return array.astype({"f32": np.float32, "f64": np.float64, "f16": np.float16}[self.element])

    def sees(self):
        """[queries, keys]: what places leave in sight."""
        query, key = np.arange(self.tokens)[:, None] + self.offset, np.arange(self.keys)[None]
        seen = np.ones((self.tokens, self.keys), bool)
        if self.causal:
            seen &= key <= query
        if self.right is not None:
            seen &= key <= query + self.right
        if self.left is not None:
            seen &= key >= query - self.left
        return seen

    def weights(self, arrays):
        """The weights of keys, [batch, heads, queries, keys], with the slopes of the cap there."""
        q, k = (arrays[name].astype(np.float64) for name in "qk")
        scores = q @ np.repeat(k, self.group, 1).swapaxes(2, 3) * self.scale
        slope = np.ones_like(scores)
        if self.softcap:
            turned = np.tanh(scores / self.softcap)
            scores, slope = self.softcap * turned, 1 - turned**2
        if "m" in arrays:
            scores = np.where(arrays["m"], scores, -np.inf) if arrays["m"].dtype == bool else scores + arrays["m"].astype(np.float64)
        scores = np.where(self.sees(), scores, -np.inf)
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - np.where(np.isinf(top), 0, top))
        total = weights.sum(-1, keepdims=True)
        return weights / np.where(total == 0, 1, total), slope

    def expected(self, arrays):
        return self.weights(arrays)[0] @ np.repeat(arrays["v"].astype(np.float64), self.group, 1)

    def gradients(self, arrays):
        """Of sum(y w) for queries, keys and values: the formulas of attention's gradients."""
        q, k, v, w = (arrays[name].astype(np.float64) for name in "qkvw")
        wide_k, wide_v = np.repeat(k, self.group, 1), np.repeat(v, self.group, 1)
        weights, slope = self.weights(arrays)
        of_weights = w @ wide_v.swapaxes(2, 3)
        inner = weights * (of_weights - (weights * of_weights).sum(-1, keepdims=True)) * self.scale * slope
        join = lambda heads: heads.reshape(self.batch, self.kv, self.group, *heads.shape[2:]).sum(2)
        return {"q": inner @ wide_k, "k": join(inner.swapaxes(2, 3) @ q), "v": join(weights.swapaxes(2, 3) @ w)}

    def steps(self):
        """How often a block is passed on: at as many steps behind the first some rank sees something, by places, of the block of the rank so many before it."""
        if self.keys != self.tokens:
            return self.ranks - 1 # queries and keys of a rank begin at different places
        seen, later = self.sees(), set()
        padded = np.zeros((self.shard * self.ranks,) * 2, bool)
        padded[:self.tokens, :self.keys] = seen
        # Padding is as near as what it pads.
        query, key = np.arange(len(padded))[:, None] + self.offset, np.arange(len(padded))[None]
        padded[:] = True
        if self.causal:
            padded &= key <= query
        if self.right is not None:
            padded &= key <= query + self.right
        if self.left is not None and self.offset - self.left > 1 - self.tokens:
            padded &= key >= query - self.left
        for step in range(1, self.ranks):
            for rank in range(self.ranks):
                block = (rank - step) % self.ranks
                if padded[rank * self.shard:(rank + 1) * self.shard, block * self.shard:(block + 1) * self.shard].any():
                    later.add(step)
        return len(later)

    def text(self):
        heads, e = self.kv * self.group, self.element
        mesh = ", ".join(f'"{axis}"={size}' for axis, size in self.mesh.items())
        uneven = ", uneven" if self.uneven or self.keys % self.ranks else ""
        shapes = {"q": (self.batch, heads, self.tokens, self.size), "k": (self.batch, self.kv, self.keys, self.size),
                  "v": (self.batch, self.kv, self.keys, self.value_size)}
        tensor = lambda name, cut: "tensor<" + "x".join(map(str, shapes[name])) + f"x{e}, {cut}>"
        masks = {"bool": (f"1x{heads}x{self.tokens}x{self.keys}xi1", "[{}, {}, {" + self.axes + "}, {}]"),
                 "keys": (f"{self.batch}x1x1x{self.keys}xi1", "[{}, {}, {}, {}]"),
                 "added": (f"{self.tokens}x{self.keys}x{e}", "[{" + self.axes + "}, {}]")}
        shape, cut = masks.get(self.mask, (None, "[{}]"))
        result = "tensor<" + "x".join(map(str, (*shapes["q"][:3], self.value_size))) + f"x{e}, #s>"
        lines = [f"#mesh = #spmd.mesh<[{mesh}]>", f"#s = #spmd.sharding<#mesh, [{{}}, {{}}, {{{self.axes}}}, {{}}]{uneven}>",
                 "#w = #spmd.sharding<#mesh, [{}, {}, {}, {}]>", f"#m = #spmd.sharding<#mesh, {cut}{uneven if self.mask != 'keys' else ''}>"]
        given = [f'%{name}: {tensor(name, "#s")} {{nn.name = "{name}"}}' for name in "qkv"]
        if self.mask:
            given.append(f'%m: tensor<{shape}, #m> {{nn.name = "m"}}')
        lines.append(f'func.func @main({", ".join(given)}) -> ({result} {{nn.name = "y"}}) {{')
        key, value, held = "%k", "%v", "#s"
        if self.written:
            lines += [f"  %{name}w = spmd.reshard %{name} : {tensor(name, '#s')} to {tensor(name, '#w')}" for name in "kv"]
            key, value, held = "%kw", "%vw", "#w"
        words = ", ".join([f"causalOffset = {self.offset}"] * (self.offset != 0) + [f"softcap = {self.softcap}"] * (self.softcap > 0) +
                          [f"left = {self.left}"] * (self.left is not None) + [f"right = {self.right}"] * (self.right is not None))
        types = [tensor("q", "#s"), tensor("k", held), tensor("v", held)] + [f"tensor<{shape}, #m>"] * bool(self.mask)
        lines.append(f"  %0 = nn.attention %q, {key}, {value} {'mask %m ' if self.mask else ''}scale {self.scale!r} {'causal ' if self.causal else ''}"
                     f"{{{words}}} : ({', '.join(types)}) -> {result}")
        return "\n".join(lines + [f"  return %0 : {result}", "}", ""])


    def step(self, build, path):
        """Writes the gradients of sum(y w) as a file of their own, in which nothing is decided, and gives the options that decide it."""
        heads, e = self.kv * self.group, self.element
        shapes = {"q": (self.batch, heads, self.tokens, self.size), "k": (self.batch, self.kv, self.keys, self.size),
                  "v": (self.batch, self.kv, self.keys, self.value_size), "w": (self.batch, heads, self.tokens, self.value_size)}
        types = {name: "tensor<" + "x".join(map(str, shape)) + f"x{e}>" for name, shape in shapes.items()}
        masks = {"bool": f"tensor<1x{heads}x{self.tokens}x{self.keys}xi1>", "keys": f"tensor<{self.batch}x1x1x{self.keys}xi1>",
                 "added": f"tensor<{self.tokens}x{self.keys}x{e}>"}
        given = [f'%{name}: {types[name]} {{nn.name = "{name}"{", nn.role = " + chr(34) + "parameter" + chr(34) if name != "w" else ""}}}' for name in "qkvw"]
        given += [f'%m: {masks.get(self.mask)} {{nn.name = "m"}}'] * bool(self.mask)
        words = ", ".join([f"causalOffset = {self.offset}"] * (self.offset != 0) + [f"softcap = {self.softcap}"] * (self.softcap > 0) +
                          [f"left = {self.left}"] * (self.left is not None) + [f"right = {self.right}"] * (self.right is not None))
        read = [types["q"], types["k"], types["v"]] + [masks.get(self.mask)] * bool(self.mask)
        text = [f'func.func @main({", ".join(given)}) -> (tensor<{e}> {{nn.name = "loss"}}) {{',
                f"  %0 = nn.attention %q, %k, %v {'mask %m ' if self.mask else ''}scale {self.scale!r} {'causal ' if self.causal else ''}{{{words}}} : ({', '.join(read)}) -> {types['w']} loc(#nn.node<\"attend\", \"Attention\", [\"q\", \"k\", \"v\"], [[\"y\"]]>)",
                f"  %1 = nn.mul %0, %w : ({types['w']}, {types['w']}) -> {types['w']}",
                f"  %2 = nn.reduce sum %1 dims [0, 1, 2, 3] : ({types['w']}) -> tensor<{e}>", f"  return %2 : tensor<{e}>", "}", ""]
        made = subprocess.run([os.path.join(build, "bin", "cleave-opt"), "-", "--nn-differentiate", "--mlir-print-debuginfo", "-o", path], input="\n".join(text), capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(made.stderr[-400:])
        axes = "[" + ", ".join(axis.strip('"') for axis in self.axes.split(", ")) + "]"
        mesh = ",".join(f"{axis}={size}" for axis, size in self.mesh.items())
        uneven = ["--uneven"] * (self.uneven or self.keys % self.ranks != 0)
        rules = [f"{name}=[_,_,{axes},_]" for name in ("q", "k", "v", "w", "y", "grad(q)", "grad(k)", "grad(v)")]
        return ["--mesh", mesh, *uneven] + [word for rule in rules for word in ("--shard", rule)]


def problem(build, number):
    case = Case(number)
    with tempfile.TemporaryDirectory() as folder:
        model, inputs, outputs, path = (os.path.join(folder, name) for name in ("m.mlir", "in.npz", "out.npz", "report.json"))
        options = case.step(build, model) if case.back else []
        if not case.back:
            with open(model, "w") as file:
                file.write(case.text())
        arrays = case.arrays()
        np.savez(inputs, **arrays)
        done = harness.cleave(build, "run", model, "--attention=ring", "--inputs", inputs, "--outputs", outputs, "--report", path, "--quiet",
                              *case.run, *options)
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr.strip()[:600]}\n{case.text()}"
        widen = lambda array: (array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array).astype(np.float64)
        results = {name: widen(array) for name, array in np.load(outputs).items()}
        with open(path) as file:
            report = json.load(file)
    wanted = {f"grad({name})": gradient for name, gradient in case.gradients(arrays).items()} if case.back else {"y": case.expected(arrays)}
    tolerance = max(TOLERANCES[case.element], TOLERANCES["bf16"] if "bf16" in case.run else 0)
    for name, expected in wanted.items():
        got = results[name]
        if not np.allclose(got, expected, rtol=tolerance, atol=tolerance * max(1, abs(expected).max())):
            return f"{name} differs by {abs(got - expected).max()}: {case.run} {options}\n{case.text()}"
    kinds = {kind: (total["count"], total["wire_bytes_per_rank"]) for kind, total in report["totals"].items()}
    steps, size = case.steps(), {"f32": 4, "f64": 8, "f16": 2, "bf16": 2}[case.element]
    # On the way back keys and values go once more, their gradients at each step behind the first, and home.
    hops = steps + (2 * steps + (steps > 0) if case.back else 0)
    if case.back:
        kinds.pop("all_reduce") # of the loss
    passed, sent = (sum(values) for values in zip(*(kinds.pop(kind, (0, 0)) for kind in ("window", "permute"))))
    formula = hops * case.batch * case.kv * case.shard * (case.size + case.value_size) * size
    if passed != 2 * hops or kinds:
        return f"{passed} blocks are passed on, by formula {2 * hops}; beside them {kinds}: {options}\n{case.text()}"
    # A gradient that a kernel stores as bf16 is sent so.
    isRight = formula / 2 <= sent <= formula if case.back and "bf16" in case.run else sent == formula
    return "" if isRight else f"{sent} bytes are sent, by formula {formula}\n{case.text()}"


def main():
    counts = [word for word in sys.argv if word.startswith("--count=")]
    build, names, _ = harness.arguments(*counts)
    cases = {str(number): number for number in range(int(counts[-1][8:]) if counts else 420)}
    sys.exit(harness.run(harness.select(cases, names), lambda number: problem(build, number)))


if __name__ == "__main__":
    main()
