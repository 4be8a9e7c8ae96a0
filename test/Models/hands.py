"""Pipelines whose stages stand in the plan, beside what is sharded inside of a stage: programs against recorded outputs, and numpy.

Usage: hands.py BUILD_DIR [NAME...]

    stages: [{first: "*/h.0/*"}, {first: "*/h.1/*"}]         alone, and beside data, tensor and both

What is sharded puts collectives and slices between nodes, which are called as the node that they are for: they start no stage. Values that
several stages read are there in small (`shared`): a table of each sample, read by every layer, whole or cut.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
from pipelines import HERE, call, find_dims, repeat
from sharded import rules

# By model: stages as a plan writes them.
HANDS = {
    "gpt2_ts17": ['[{first: "*/h.0/*"}, {first: "*/h.1/*"}]', '[{nodes: "*/wte/*"}, {first: "*/h.1/*"}]',
                  '[{nodes: "*/{wte,wpe}/*"}, {first: "*/h.0/*"}, {first: "*/h.1/*"}, {first: "*/ln_f/*"}]'],
    "bert_ts17": ['[{nodes: "*/embeddings/*"}, {first: "*/layer.1/*"}]', '[{first: "*/layer.0/*"}, {first: "*/layer.1/*"}]',
                  '[{first: "*/layer.0/attention/*"}, {first: "*/layer.0/intermediate/*"}, {first: "*/layer.1/*"}, {nodes: "*/pooler/*"}]'],
    "bert_ort": ['[{nodes: "EmbedLayerNormalization_0"}, {first: "*/layer.1/*"}]'],
    "bert_dyn18": ['[{nodes: "{node_embedding,node_embedding_1}"}, {first: "node_linear_6"}]'],
    "vit_dyn18": ['[{nodes: "node_conv2d"}, {first: "node_layer_norm_2"}]', '[{first: "node_layer_norm"}, {first: "node_layer_norm_2"}]'],
    "resnet_ts17": ['[{nodes: "/stem/*"}, {first: "/blocks/blocks.4/*"}]',
                    '[{first: "/stem/*"}, {first: "/blocks/blocks.2/*"}, {first: "/blocks/blocks.4/*"}, {first: "/blocks/blocks.6/*"}]'],
    # Skips go from the first stages to the last ones.
    "unet_dyn18": ['[{nodes: "node_conv2d"}, {first: "node_convolution"}]',
                   '[{first: "node_conv2d"}, {first: "node_max_pool2d"}, {first: "node_avg_pool2d"}, {first: "node_cat_1"}]'],
    "llama_gqa_dyn18": ['[{nodes: "node_embedding"}, {first: "node_pow_3"}]', '[{first: "node_pow_1"}, {first: "node_pow_3"}]'],
    "llama_gqa_dyn23": ['[{nodes: "node_embedding"}, {first: "node_linear_7"}]'],
    "gpt2_kv": ['[{nodes: "node_embedding"}, {first: "node_layer_norm_2"}]'],
    "t5_like_dyn18": ['[{first: "node_embedding"}, {first: "node_embedding_2"}]'],
    "mlp_external": ['[{nodes: "node_linear"}, {nodes: "node_linear_2"}]'],
}
INSIDE = ["", "data=2", "model=2", "data=2,model=2"]
# A value of the batch that both layers read; the batch is also split unevenly, and annotations are about values that are read in several stages.
SHARED = [
    ("stage=2", "microbatches: 2", ""), ("stage=2,d=2", "microbatches: 2", "x: [d, _]; cs: [_, _]"), ("stage=2,d=2", "microbatches: 1", "x: [d, _]; cs: [_, _]"),
    ("stage=2,d=2", "microbatches: 2", "'{x,p}': [d, _]"), ("stage=2,t=2", "microbatches: 2", "'a*': [_, t]"), ("stage=2,t=2", "microbatches: 4", "a0: [_, t]; a1: [t, _]"),
    ("stage=2,t=3", "microbatches: 2", "cs: [_, t]; x: [_, _]"), ("d=2,stage=2,t=2", "microbatches: 2", "x: [d, _]; cs: [_, _]; 'a*': [_, t]"),
    ("stage=2,t=4", "microbatches: 2", "'a*': [_, t]"), ("stage=2,t=4", "microbatches: 3, uneven: true", "a0: [_, t]; a1: [t, _]"),
    ("stage=2,t=4", "microbatches: 3, uneven: true", "cs: [_, t]"), ("stage=2,a=3,b=2", "microbatches: 2", "cs: [_, a]; a1: [b, _]"), ("stage=2,d=2", "microbatches: 2, send: relay", "x: [d, _]; cs: [_, _]"),
]


def write_plan(path, mesh, pipeline, annotations, is_uneven=False):
    lines = ["mesh: {" + mesh.replace("=", ": ").replace(",", ", ") + "}", "pipeline: {axis: stage, " + pipeline + "}"]
    lines += ["uneven: true"] * is_uneven + ["shard:"] * bool(annotations)
    lines += [f"  - {{tensor: {name!r}, dims: {dims}}}" for name, dims in annotations]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def run_program(build, folder, model, plan, words, inputs):
    program, source, outputs = (os.path.join(folder, name) for name in ("m.cleave", "in.npz", "out.npz"))
    np.savez(source, **inputs)
    call(f"{build}/bin/cleave", "compile", model, "--plan", plan, *words, "--quiet", "-o", program)
    call(f"{build}/bin/cleave-run", program, "--inputs", source, "--outputs", outputs, "--deadline", "30", "--ranks", "threads")
    return np.load(outputs)


def problem(build, name, lines, inside):
    """What is wrong with a fixture, or an empty string."""
    arrays = dict(np.load(os.path.join(HERE, name + ".npz")))
    model = onnx.load(os.path.join(HERE, name + ".onnx"), load_external_data=False)
    is_dynamic = any(dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim[:1])
    arrays = repeat(arrays, 4 if is_dynamic else 1)
    # Of two samples each device has one.
    microbatches = 1 if "data" in inside and not is_dynamic else 2
    annotations = [tuple(word.split("=", 1)) for word in rules(name, inside, arrays)[1::2]] if inside else []
    count = lines.count("{", 0) - lines.count("{wte") - lines.count("{node_")
    ranks = 2 if count == 4 else count
    chunks = f", chunks: {count // ranks}" if count > ranks else ""
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "plan.yaml")
        write_plan(plan, ",".join([f"stage={ranks}", *[inside] * bool(inside)]), f"microbatches: {microbatches}{chunks}, stages: {lines}", annotations)
        got = run_program(build, folder, os.path.join(HERE, name + ".onnx"), plan, find_dims(name, arrays),
                          {key[3:]: array for key, array in arrays.items() if key.startswith("in:")})
        return harness.difference(got, arrays, 1e-4, 1e-5)


def write_shared(path, samples):
    """Two layers that read one table of each sample; inputs, and what the output is by numpy."""
    random = np.random.default_rng(3)
    draw = lambda *shape: random.standard_normal(shape).astype(np.float32)
    x, p, a0, a1 = draw(samples, 6), draw(samples, 6), draw(6, 6), draw(6, 6)
    node = helper.make_node
    nodes = [node("Cos", ["p"], ["cs"], "/rope/cos"), node("Mul", ["x", "cs"], ["r0"], "/layer.0/rope"), node("MatMul", ["r0", "a0"], ["m0"], "/layer.0/mm"),
             node("Mul", ["m0", "cs"], ["r1"], "/layer.1/rope"), node("MatMul", ["r1", "a1"], ["m1"], "/layer.1/mm")]
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [samples, 6])
    graph = helper.make_graph(nodes, "shared", [tensor("x"), tensor("p")], [tensor("m1")],
                              [onnx.numpy_helper.from_array(array, name) for name, array in (("a0", a0), ("a1", a1))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return {"x": x, "p": p}, ((x * np.cos(p)) @ a0 * np.cos(p)) @ a1


def shared(build, mesh, pipeline, annotations, samples):
    with tempfile.TemporaryDirectory() as folder:
        model, plan = os.path.join(folder, "m.onnx"), os.path.join(folder, "plan.yaml")
        inputs, expected = write_shared(model, samples)
        pairs = [tuple(annotation.strip().replace("'", "").split(": ")) for annotation in annotations.split(";")] if annotations else []
        write_plan(plan, mesh, pipeline + ', stages: [{first: "/layer.0/*"}, {first: "/layer.1/*"}]', pairs, is_uneven=True)
        wrong = harness.difference(run_program(build, folder, model, plan, [], inputs), {"out:m1": expected}, 1e-4, 1e-5)
        if not wrong:
            call(f"{build}/bin/cleave", "run", model, "--plan", plan, "--check", "--quiet")
        return wrong


def main():
    build, wanted, _ = harness.arguments()
    cases = {f"{name} beside {inside or 'nothing'}, {lines}": lambda case=(name, lines, inside): problem(build, *case)
             for name, each in HANDS.items() for lines in each for inside in INSIDE}
    for mesh, pipeline, annotations in SHARED:
        # Of ten samples a microbatch has five, which no axis divides that may be free.
        for samples in (5, 7) if "uneven" in pipeline else (4, 8) if "d=2" in mesh or "microbatches: 4" in pipeline else (4, 8, 10):
            cases[f"shared by {samples} on {mesh}, {pipeline}, {annotations or 'no annotations'}"] = lambda case=(mesh, pipeline, annotations, samples): shared(build, *case)
    return harness.run(harness.select(cases, wanted), lambda case: case())


if __name__ == "__main__":
    sys.exit(main())
