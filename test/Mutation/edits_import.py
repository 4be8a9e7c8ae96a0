"""Small errors in the import: gradients, scans, weights that share bytes."""
from edit import Edit

GRADIENTS, SCAN = "lib/Dialect/Nn/Gradients/", "lib/Import/Onnx/Control/Scan.cpp"

EDITS = [
    # ===--- Gradients -------------------------------------------------------===
    Edit("one-share-of-a-gradient", GRADIENTS + "Differentiate.cpp", "sum ? f.add(sum, part) : part", "part",
         "of a value that several ops read, one counts", ["gradients"]),
    Edit("what-is-set-hides-nothing", GRADIENTS + "Indexing.cpp", "return update.scatter(ScatterKind::Set, g.of(), g.zerosLike(g.operand(2)));", "return g.of();",
         "what an update overwrites has a gradient", ["gradients"]),
    Edit("fed-constants-are-folded", "lib/Import/Onnx/Gradient.cpp", "node.getImporter().getFolder().forget(now[leaf]);", ";",
         "a constant that is fed to a leaf is differentiated by nothing", ["gradients"]),
    Edit("running-sums-run-on", GRADIENTS + "Reduction.cpp", "!getReverse()", "getReverse()",
         "a running sum's gradient runs the same way", ["gradients"]),
    Edit("sums-for-each-element", GRADIENTS + "Differentiate.cpp", "shape[dim - added] == 1 && from[dim] != 1", "false",
         "dims that were repeated are not summed", ["gradients"]),
    Edit("zeros-at-the-wrong-end", GRADIENTS + "Convolution.cpp", "reach - windows.low[i]", "windows.low[i]",
         "what windows read is handed back as far from the end", ["gradients"]),
    Edit("groups-as-one", GRADIENTS + "Convolution.cpp", "apart[0] /= groups;", "apart[0] /= 1;",
         "channels of groups are swapped as if they were one", ["gradients"]),
    Edit("every-maximum-wins", GRADIENTS + "Convolution.cpp", "left = f.select(hits, f.scalarLike(left, 0), left);", ";",
         "of equal maxima of a window each one has all", ["gradients"]),
    Edit("no-cap-on-the-way-back", GRADIENTS + "Attention.cpp", "inner = f.mul(inner, f.sub(1, f.square(uncapped)));", ";",
         "the cap of scores has no slope", ["gradients"]),
    Edit("zeros-divide", GRADIENTS + "Reduction.cpp", "f.eq(count, 1)", "f.eq(count, 0)", "a product with one zero has no gradient there", ["gradients"]),
    Edit("a-scale-of-one-block", GRADIENTS + "Conversion.cpp", "f.sum(f.reshape(product, shape), {dim + 1})", "f.sum(f.reshape(product, shape), {dim})",
         "scales of blocks get the sums of other elements", ["gradients"]),
    # ===--- Steps of training -----------------------------------------------===
    Edit("no-correction", "lib/Dialect/Nn/Training/Optimizers.cpp", "f.div(f.div(moments[0], first), deviation)", "f.div(moments[0], deviation)",
         "the first moment is not corrected", ["training-steps"]),
    Edit("decay-in-the-gradient", "lib/Dialect/Nn/Training/Optimizers.cpp", "decay != 0 && !isApart", "decay != 0", "adamw's decay joins the gradient, too",
         ["training-steps"]),
    Edit("ignored-labels-count", "lib/Dialect/Nn/Training/Losses.cpp", "f.max(count, 1)", "f.scalarLike(count, double(cast<RankedTensorType>(labels.getType()).getNumElements()))",
         "what does not count makes the mean smaller", ["training-steps"]),
    Edit("no-clip", "lib/Dialect/Nn/Transforms/AttachUpdate.cpp", "weight.gradient = f.mul(g, f.cast(factor, Composer::elementType(g)));", ";",
         "gradients are as long as they are", ["training-steps"]),
    Edit("eval-of-another-place", "lib/Compiler/Evaluation.cpp", "shardArguments(func, made->arguments);", ";",
         "arguments of eval are not where the step has them", ["training-tuned"]),
    Edit("half-an-adapter", "lib/Export/Onnx/Adapters.cpp", "+= adapter.factor * sum;", "+= sum;", "adapters are folded without their factor",
         ["training-tuned"]),
    Edit("adapters-of-the-whole", "lib/Export/Onnx/Adapters.cpp", "adapter.starts.empty()", "true", "parts of a weight all get the first one's",
         ["training-tuned"]),
    Edit("first-group-of-all", "lib/Dialect/Nn/Transforms/AttachUpdate.cpp", "rate = group.rate;", ";", "a group has no rate of its own", ["training-steps"]),
    Edit("tied-weights-apart", "lib/Dialect/Nn/Transforms/OutlineStep.cpp", "one.replaceAllUsesWith(argument);", "if (one == load) one.replaceAllUsesWith(argument); else continue;",
         "the second load of a weight is not trained", ["lit:Nn/Transforms/outline-step"]),
    # ===--- Scans -----------------------------------------------------------===
    Edit("last-step-of-the-longest", SCAN, "scan.steps.value_or(scan.length) - 1 - index", "scan.length - 1 - index",
         "a short sample runs backwards from the end of the others", ["control"]),
    Edit("steps-behind-the-end", SCAN, "running && part ? f.select(running, part, 0) : part", "part",
         "what a sample has behind its own steps is no zero", ["control"]),
    # ===--- Elements that share bytes ---------------------------------------===
    Edit("elements-share-no-byte", "lib/Plan/PlanCheck.cpp", "size % granule.perByte == 0", "true", "shards end inside of bytes",
         ["CleavePlanTests", "lit:Import/packed-cuts"]),
    Edit("elements-share-no-scale", "lib/Plan/PlanCheck.cpp", "size % granule.block == 0", "true",
         "shards end inside of blocks that share a scale", ["CleavePlanTests", "lit:Import/packed-cuts"]),
    Edit("blocks-of-no-dim", "lib/Dialect/Nn/IR/Packed.cpp", "packed.blocks[scaled.getDim()] = scaled.getBlock();", ";",
         "nobody sees that nn.dequantize scales blocks", ["lit:Import/packed-cuts"]),
]
