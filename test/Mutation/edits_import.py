"""Small errors in the import: gradients, scans, weights that share bytes."""
from edit import Edit

GRADIENTS, SCAN = "lib/Import/Onnx/Gradient/", "lib/Import/Onnx/Control/Scan.cpp"

EDITS = [
    # ===--- Gradients -------------------------------------------------------===
    Edit("one-share-of-a-gradient", GRADIENTS + "Gradient.cpp", "sum ? node.create<nn::AddOp>(sum, part) : part", "part",
         "of a value that several ops read, one counts", ["gradients"]),
    Edit("what-is-set-hides-nothing", GRADIENTS + "Indexing.cpp", "isSet ? clear(d.zerosLike(scatter.getUpdates())) : d.gradient()", "d.gradient()",
         "what an update overwrites has a gradient", ["gradients"]),
    Edit("fed-constants-are-folded", GRADIENTS + "Gradient.cpp", "node.getImporter().getFolder().forget(now[leaf]);", ";",
         "a constant that is fed to a leaf is differentiated by nothing", ["gradients"]),
    Edit("running-sums-run-on", GRADIENTS + "Rows.cpp", "!sums.getReverse()", "sums.getReverse()",
         "a running sum's gradient runs the same way", ["gradients"]),
    Edit("sums-for-each-element", GRADIENTS + "Gradient.cpp", "shape[dim - added] == 1 && from[dim] != 1", "false",
         "dims that were repeated are not summed", ["gradients"]),
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
