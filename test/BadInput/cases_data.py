"""Bad inputs, outputs that cannot be written, bad .mlir files."""
import io

import numpy as np

from case import Case, relu


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def run(name, content, *words, arguments=()):
    files = {"m.onnx": relu()}
    if content is not None:
        files["in.npz"] = content
    return Case(name, ["run", "m.onnx", "--inputs", "in.npz", "--outputs", "out.npz", *arguments], files, list(words))


def arrays():
    good = np.ones((4, 8), np.float32)
    yield run("inputs-absent", None, "in.npz")
    yield run("input-missing", npz(z=good), "in.npz", "x")
    yield run("input-of-wrong-shape", npz(x=np.ones((4, 9), np.float32)), "x")
    yield run("input-of-wrong-type", npz(x=np.ones((4, 8), np.int64)), "in.npz", "input 'x' is i64[4, 8]",
              "expected f32[4, 8]", ".astype(numpy.float32)")
    yield run("inputs-not-a-zip", b"PK no archive", "in.npz")
    yield run("inputs-truncated", npz(x=good)[:100], "in.npz")
    broken = bytearray(npz(x=good))
    broken[broken.index(b"NUMPY")] ^= 0xFF
    yield run("inputs-without-magic", bytes(broken), "in.npz")
    flipped = bytearray(npz(x=good))
    flipped[200] ^= 0xFF
    yield run("inputs-with-a-flipped-bit", bytes(flipped), "in.npz")
    yield run("inputs-big-endian", npz(x=good.astype(">f4")), "in.npz")


def outputs():
    good = {"m.onnx": relu()}
    yield Case("output-folder-absent", ["run", "m.onnx", "--outputs", "nowhere/out.npz"], good, ["nowhere/out.npz"])
    yield Case("module-folder-absent", ["import", "m.onnx", "-o", "nowhere/out.mlir"], good, ["nowhere/out.mlir"])
    yield Case("report-folder-absent", ["run", "m.onnx", "--mesh", "data=2", "--report", "nowhere/r.json"], good,
               ["nowhere/r.json"])


def callers(callees, times=1):
    """Functions of one tensor, each calling its callee this many times; one call a line, the first in line 2."""
    kind = "tensor<2xf32>"
    call = lambda callee, i: f"  %{i} = func.call @{callee}(%x) : ({kind}) -> {kind}\n"
    body = lambda callee: "".join(call(callee, i) for i in range(times)) if callee else f"  %0 = nn.neg %x : ({kind}) -> {kind}\n"
    return "".join(f"func.func @{name}(%x: {kind}) -> {kind} {{\n{body(callee)}  return %0 : {kind}\n}}\n"
                   for name, callee in callees.items())


def modules():
    mlir = lambda name, text, *words: Case(name, ["run", "m.mlir"], {"m.mlir": text.encode()}, list(words))
    yield mlir("mlir-syntax", "func.func @main(", "m.mlir:1:")
    yield mlir("mlir-unknown-op", "func.func @main() { \"nn.frobnicate\"() : () -> () return }", "m.mlir:1:")
    yield mlir("mlir-wrong-type", "func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n"
               "  %y = nn.neg %x : (tensor<2xf32>) -> tensor<3xf32>\n  return %y : tensor<3xf32>\n}", "m.mlir:2:")
    for element in ("complex<f32>", "index", "vector<2xf32>", "f8E3M4"):
        text = "func.func @main(%x: tensor<4xE>) -> tensor<4xE> {\n  return %x : tensor<4xE>\n}".replace("E", element)
        for words in (["shard", "m.mlir", "--mesh", "x=2", "-o", "out.mlir"], ["run", "m.mlir"]):
            yield Case(f"mlir-elements-{element}-{words[0]}", words, {"m.mlir": text.encode()},
                       ["m.mlir:1:17", f"tensor<4x{element}>", "S8"])
    yield mlir("mlir-nested-too-deep", "module {\n" * 20000, "m.mlir:257:8", "nest more than 256 deep")
    yield mlir("mlir-types-nested-too-deep", "func.func @main(%x: " + "tuple<" * 100000, "m.mlir:1:", "nest")
    yield mlir("mlir-without-main", "module {}", "main")
    yield mlir("mlir-without-body", "func.func private @main(tensor<2xf32>)", "m.mlir:1:", "body")
    identity = lambda kind: f"func.func @main(%x: {kind}) -> {kind} {{ return %x : {kind} }}"
    yield mlir("mlir-dynamic-argument", identity("tensor<?xf32>"), "m.mlir:1:", "argument 0", "static")
    yield mlir("mlir-unranked-argument", identity("tensor<*xf32>"), "m.mlir:1:", "argument 0")
    yield mlir("mlir-scalar-argument", identity("i32"), "m.mlir:1:", "argument 0")
    yield mlir("mlir-recursion", callers({"main": "f", "f": "g", "g": "f"}), "m.mlir:10:", "'f' calls itself")
    doubling = callers({"main": "f0", **{f"f{n}": f"f{n + 1}" for n in range(60)}, "f60": None}, times=2)
    yield mlir("mlir-calls-that-double", doubling, "m.mlir:", "more than 1000000 ops")
    load = "func.func @main() -> tensor<2xf32> {\n  %0 = nn.load @w : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}"
    yield mlir("mlir-unknown-parameter", load, "m.mlir:2:", "@w")
    weight = lambda place: f"nn.param @w : tensor<2xf32> = #nn.weight<{place}>\n{load}"
    yield mlir("mlir-parameter-too-short", weight('"m.mlir", 0, 4'), "m.mlir:1:", "8")
    stale = lambda name, place, *words: Case(name, ["run", "m.mlir"], {"m.mlir": weight(place).encode(), "w.bin": bytes(9)},
                                             ["m.mlir:1:", "@w", "w.bin", *words])
    yield stale("mlir-parameter-of-another-size", '"w.bin", 0, 8 of 10 digest "0123456789abcdef"', "10 bytes", "9")
    yield stale("mlir-parameter-of-another-export", '"w.bin", 0, 8 of 9 digest "0123456789abcdef"', "0123456789abcdef")
    for name, path in (("absolute", "/etc/passwd"), ("above", "../m.mlir"), ("around", "../../etc/passwd")):
        yield mlir("weights-" + name, weight(f'"{path}", 0, 8'), "m.mlir:1:", path, "--weights")
    yield Case("weights-nowhere", ["run", "m.mlir", "--weights", "there"], {"m.mlir": weight('"w.bin", 0, 8').encode()},
               ["m.mlir:1:", "w.bin", "there"])
    yield Case("weights-of-onnx", ["run", "m.onnx", "--weights", "."], {"m.onnx": relu()}, ["--weights", "m.onnx"], 2)
    yield Case("against-what-is-whole", ["run", "m.mlir", "--against", "m.onnx"],
               {"m.onnx": relu(), "m.mlir": identity("tensor<2xf32>").encode()}, ["--against", "--check"], 2)
    yield mlir("mlir-parameter-before-its-file", weight('"m.mlir", -8, 8'), "m.mlir:1:", "-8")
    # Running cannot go on: exit code 4.
    fault = lambda name, text, *words: Case(name, ["run", "m.mlir"], {"m.mlir": text.encode()}, list(words), 4)
    yield Case("more-ranks-than-memory", ["run", "m.onnx", "--mesh", "data=4"], {"m.onnx": relu((1 << 17, 1 << 17))},
               ["memory"], 4)
    yield Case("more-ranks-than-anybody-has", ["run", "m.onnx", "--mesh", "data=2147483647"], {"m.onnx": relu()}, ["2^22"], 2)
    yield Case("axes-that-overflow", ["run", "m.onnx", "--mesh", ",".join(f"a{i}=2147483647" for i in range(9))], {"m.onnx": relu()}, ["2^22"], 2)
    yield Case("axes-without-end", ["run", "m.onnx", "--mesh", ",".join(f"a{i}=1" for i in range(10000))], {"m.onnx": relu()}, ["64 axes"], 2)
    yield fault("mlir-argument-of-a-terabyte", identity("tensor<1048576x1048576xf32>"), "m.mlir:1:", "memory")
    yield Case("model-of-terabytes", ["run", "m.onnx"], {"m.onnx": relu((1 << 20, 1 << 20))}, ["x", "memory"], 4)
    yield Case("millions-of-ranks", ["run", "m.onnx", "--mesh", "data=4194304"], {"m.onnx": relu()}, ["memory"], 4,
               is_about_limit=True)


def cases():
    for group in (arrays, outputs, modules):
        yield from group()
