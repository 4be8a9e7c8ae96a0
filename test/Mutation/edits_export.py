"""Small errors in what `cleave export` writes (edits.py)."""
from edit import Edit

ONNX = "lib/Export/Onnx/"
EXPORT = ["export"]

EDITS = [
    Edit("export-group-of-neighbours", ONNX + "Collectives.cpp", "digits.strides.push_back(stride);", "digits.strides.push_back(1);",
         "a group is ranks with neighbouring numbers, whatever its axis", EXPORT),
    Edit("export-order-of-digits", ONNX + "Collectives.cpp", "addDigit(digits, mesh, axis, dim);",
         "{ addDigit(digits, mesh, axis, dim); size_t last = digits.dims.size() - 1; "
         "if (last > 0 && digits.dims[last - 1] == digits.dims[last]) { std::swap(digits.extents[last - 1], digits.extents[last]); "
         "std::swap(digits.strides[last - 1], digits.strides[last]); } }",
         "digits of a dim are minor to major", EXPORT),
    Edit("export-everyone", ONNX + "Collectives.cpp", "return behind == mesh.getNumRanks();", "return true;",
         "some ranks are taken for all", EXPORT),
    Edit("export-any-kind", ONNX + "Collectives.cpp", "op.getKind() == ReductionKind::Sum", "true",
         "a maximum is written as onnxruntime's sum", EXPORT),
    Edit("export-all-to-all-back", ONNX + "Collectives.cpp", "if (dim == gather)", "if (dim == 0)",
         "what came from ranks is put in front", EXPORT),
    Edit("export-window", ONNX + "Collectives.cpp", "op.getLows()", "op.getSteps()",
         "a window begins a step later", EXPORT),
    Edit("export-permute", ONNX + "Collectives.cpp", "getDigits(op.getFrom())", "getDigits(op.getTo())",
         "pieces are exchanged from where they go", EXPORT),
    Edit("export-join", ONNX + "Collectives.cpp", 'addParts<spmd::JoinOp>(table, "Join")', 'addParts<spmd::JoinOp>(table, "Split")',
         "parts are taken apart instead of put together", EXPORT),
    Edit("export-slice-of-first", ONNX + "Collectives.cpp", "(groups.indexOf(rank) + behind) * extent", "behind * extent",
         "each rank slices the first piece", EXPORT),
    Edit("export-first-everywhere", ONNX + "Collectives.cpp", "groups.indexOf(rank) == 0", "true",
         "every rank keeps what one should", EXPORT),
    Edit("export-identity", ONNX + "Collectives.cpp", "return kind == ReductionKind::Prod ? 1 : 0;", "return 1;",
         "1 is added where nothing should be", EXPORT),
    Edit("export-shard-of-first", ONNX + "ShardWriter.cpp", "sharding.getOffset(shape, rank)", "sharding.getOffset(shape, 0)",
         "each rank has the first shard of a weight", EXPORT),
    Edit("export-part-from-start", ONNX + "ShardWriter.cpp", "box.start[dim] += offset[dim];", "box.start[dim] = offset[dim];",
         "a part of a fused weight is read from its beginning", EXPORT),
    Edit("export-one-file-for-all", ONNX + "Models.cpp", "key.push_back(group.indexOf(rank));", "key.push_back(0);",
         "all ranks have the first rank's file", EXPORT),
    Edit("export-offsets", ONNX + "Models.cpp", "places.emplace_back(offset, length);", "places.emplace_back(0, length);",
         "all weights lie at the beginning", EXPORT),
    Edit("export-cut-otherwise", ONNX + "Manifest.cpp", "port.sharding.getDims()[dim]", "port.sharding.getDims()[port.global.getRank() - 1 - dim]",
         "inputs are cut along other dims than the program expects", EXPORT),
    Edit("export-bytes", ONNX + "Convolution.cpp", "double(int64_t(1) << (8 * (i + j)))", "1.0",
         "the high byte of a convolution counts as a low one", EXPORT),
    Edit("export-sign", ONNX + "Conversion.cpp", "double(count / 2)", "0.0", "integers of 4 bits have no sign", EXPORT),
    Edit("export-offset-of-triangle", ONNX + "Movement.cpp", "out.number(op.getOffset())", "out.number(0)",
         "triangles begin on the diagonal", ["export-nodes"]),
    Edit("export-blind-queries", ONNX + "Attention.cpp", "if (!isSeeing) {", "if (false) {",
         "a query that sees nothing gives NaN", EXPORT),
    Edit("annotate-first-rank", ONNX + "Annotate.cpp", "whole.getSizes()[position] + stageRank", "whole.getSizes()[position]",
         "all stages are on the devices of the first", ["lit:Driver/emit-onnx", "annotated"]),
    Edit("annotate-edges-back", "lib/Import/Onnx/DeviceStages.cpp", "isTold && made->second > stage", "false",
         "stages may take what later ones make", ["lit:Import/devices"]),
]
