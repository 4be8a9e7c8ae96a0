"""Random plans for a model: what of it can be named, as onnxruntime computes it, and rules, states and stages on that by a seed."""
import re

import numpy as np
import onnx
import onnxruntime

MESHES = [(2,), (3,), (4,), (5,), (8,), (2, 2), (2, 3), (3, 2), (4, 2), (2, 4), (2, 2, 2)]
NAMES = ["data", "model", "x"]
# Of what a plan may ask, each as often as this.
UNEVEN, PIPELINE, STATE, RING, OPEN, TWO_AXES, SUB_AXIS, PRIORITY, LAYERS = 0.3, 0.25, 0.5, 0.25, 0.1, 0.15, 0.3, 0.2, 0.4


class Subject:
    """A tensor that a rule can name: what says so in a plan, the tensor, its shape, and what it is: input, weight, or value."""

    def __init__(self, words, tensor, shape, kind):
        self.words, self.tensor, self.shape, self.kind = words, tensor, shape, kind


class Model:
    """A fixture with inputs, and what can be named of it."""

    def __init__(self, path, inputs):
        model = onnx.load(path)
        self.inputs = {name: array.shape for name, array in inputs.items()}
        self.outputs = [output.name for output in model.graph.output]
        shapes = find_shapes(model, inputs)
        weights = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer
                   if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims)}
        computed = set(self.inputs)
        self.subjects = [Subject({"tensor": name}, name, shape, "input") for name, shape in self.inputs.items()]
        read = find_read(model)
        for node in model.graph.node:
            if node.op_type in ("Shape", "Constant") or not computed & set(node.input) or not read & set(node.output):
                continue
            computed |= set(node.output)
            self.subjects += name_operands(node, weights)
            self.subjects += [Subject({"node": node.name, "result": index} if index % 2 else {"tensor": name}, name, shapes[name], "value")
                              for index, name in enumerate(node.output) if shapes.get(name) and name in read]
        self.subjects = [subject for subject in self.subjects if any(size > 1 for size in subject.shape)]


def find_read(model):
    """Tensors whose elements an output needs, and not only their shapes."""
    read = {output.name for output in model.graph.output}
    for node in reversed(model.graph.node):
        if node.op_type not in ("Shape", "ConstantOfShape") and read & set(node.output):
            # Of what only says a shape or places others need nothing.
            taken = 1 if node.op_type in ("Reshape", "Expand", "Slice", "Unsqueeze", "Squeeze", "Tile") else len(node.input)
            read |= set(node.input[:taken])
    return read


def name_operands(node, weights):
    """The weights that a node takes, by their names and by their places."""
    for index, name in enumerate(node.input):
        if name in weights:
            yield Subject({"tensor": name}, name, weights[name], "weight")
            yield Subject({"node": node.name, "operand": index}, name, weights[name], "weight")


def find_shapes(model, inputs):
    """Of all that nodes make of floats."""
    names = [name for node in model.graph.node for name in node.output if name]
    told = onnx.ModelProto()
    told.CopyFrom(model)
    del told.graph.output[:]
    told.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(told.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {name: array.shape for name, array in zip(names, session.run(names, inputs)) if array.dtype == np.float32}


def draw_dims(random, subject, axes, is_uneven, microbatches):
    """An entry for each dim, of axes that are not used yet; None where none came out."""
    left, entries = list(random.permutation(list(axes))), ["_"] * len(subject.shape)
    for dim in random.permutation(len(subject.shape)):
        # Of the batch a microbatch has a part.
        size = subject.shape[dim] // (microbatches if dim == 0 and subject.kind != "weight" else 1)
        wanted = 2 if len(left) > 1 and random.random() < TWO_AXES else 1
        shards = int(np.prod([axes[axis] for axis in left[:wanted]])) if left else 0
        if not left or random.random() < 0.35 or size < 2 or (not is_uneven and size % shards):
            continue
        taken, left = [str(axis) for axis in left[:wanted]], left[wanted:]
        entries[dim] = taken if wanted == 2 else taken[0]
        if wanted == 1 and axes[taken[0]] == 4 and random.random() < SUB_AXIS:
            entries[dim] = f"{taken[0]}:(1)2"
        elif wanted == 1 and random.random() < OPEN:
            entries[dim] += "?"
    if all(entry == "_" for entry in entries):
        return None
    return [entry if entry != "_" or random.random() > OPEN else "?" for entry in entries]


def draw_rules(random, model, axes, is_uneven, microbatches):
    """Rules for tensors that differ."""
    rules, named = [], set()
    for kind in random.choice(["input", "weight", "value"], random.integers(1, 7), p=[0.3, 0.5, 0.2]):
        subjects = [subject for subject in model.subjects if subject.kind == kind and subject.tensor not in named]
        if not subjects:
            continue
        subject = subjects[random.integers(len(subjects))]
        dims = draw_dims(random, subject, axes, is_uneven, microbatches)
        if not dims:
            continue
        alike = name_alike(subject, model.subjects)
        if random.random() < LAYERS and len(alike) > 1 and not alike & named:
            rules.append({"tensor": "{" + ",".join(sorted(alike)) + "}", "dims": dims})
        elif subject.tensor not in named:
            alike = {subject.tensor}
            rules.append({**subject.words, "dims": dims, **({"priority": int(random.integers(1, 3))} if random.random() < PRIORITY else {})})
        named |= alike
    return rules


def name_alike(subject, subjects):
    """Tensors of the same shape whose names differ from that of `subject` in numbers, those of other layers."""
    bare = re.sub(r"\d+", "0", subject.tensor)
    return {other.tensor for other in subjects if other.shape == subject.shape and other.kind == subject.kind and re.sub(r"\d+", "0", other.tensor) == bare}


def draw_pipeline(random, batch):
    """What a plan says of stages, of as many microbatches as divide the batch."""
    counts = [count for count in (1, 2, 4) if batch % count == 0]
    told = {"axis": "stage", "microbatches": int(random.choice(counts))}
    if random.random() < 0.3:
        told |= {"chunks": 2, "schedule": "circular", "placement": str(random.choice(["loop", "v"]))}
    return told


def draw(seed, model, states=None, has_batch=True):
    """A plan: a mesh, at least one rule or stages, and whatever else was drawn. `states`: what a plan may say of these; `has_batch`: whether
    the model has a dim of samples, which know nothing of each other."""
    random = np.random.default_rng(seed)
    while True:
        mesh = dict(zip(random.permutation(NAMES).tolist(), MESHES[random.integers(len(MESHES))]))
        has_stages = has_batch and random.random() < PIPELINE
        if has_stages:
            axis = random.choice([axis for axis, size in mesh.items() if size <= 4] or list(mesh))
            mesh = {"stage" if name == axis else name: size for name, size in mesh.items()}
        plan = {"mesh": mesh}
        if has_stages:
            plan["pipeline"] = draw_pipeline(random, next(iter(model.inputs.values()))[0])
        is_uneven = random.random() < UNEVEN
        axes = {name: size for name, size in mesh.items() if name != "stage"}
        rules = draw_rules(random, model, axes, is_uneven, plan["pipeline"]["microbatches"] if has_stages else 1) if axes else []
        if rules:
            plan["shard"] = rules
        if is_uneven:
            plan["uneven"] = True
        if random.random() < RING:
            plan["attention"] = "ring"
        if states and random.random() < STATE:
            plan["state"] = states
        if rules or has_stages:
            return plan


def draw_options(seed, where):
    """Words of the command line."""
    random = np.random.default_rng(seed + 10**6)
    words = ["--optimize=" + str(random.choice(["bytes", "time"]))] if random.random() < 0.3 else []
    words += ["--chunk-collectives=" + str(random.choice(["2", "auto"]))] if random.random() < 0.25 else []
    words += ["--keep-plan"] if random.random() < 0.1 else []
    return words + (["--libraries=none"] if "cuda" in where and random.random() < 0.3 else [])
