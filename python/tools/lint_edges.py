"""Which library may include which: read by lint.py, and explained in docs/architecture.md."""

# What a library may include, besides itself: the edges of a graph without cycles, to libraries above it in this table, or to single headers of
# these. An edge that nothing uses is an error, so the table is what the code says; a new one is a decision.
EDGES = {
    "Program": "",
    "Arrays": "Program",
    "Cuda": "Program",
    "Runtime": "Program Arrays/Safetensors.h Cuda",
    "RuntimeApi": "Program Runtime",
    "Runner": "Program Arrays Runtime",
    "Emulation": "Cuda",
    "Support": "Program Arrays Runtime",
    "Sharding": "Program Support",
    "Plan": "Program Support Sharding",
    "Solver": "Support Sharding",
    "Search": "Support Sharding Plan Solver",
    "Schedule": "Program Support",
    "Onnx": "Support",
    "Transforms": "",
    "Dialect/Spmd/IR": "Sharding",
    "Dialect/Nn/IR": "Support Dialect/Spmd/IR",
    "Dialect/Nn/ShardingRules": "Dialect/Spmd/IR Dialect/Nn/IR",
    "Dialect/Nn/Partition": "Sharding/WindowMoves.h Dialect/Spmd/IR Dialect/Nn/IR Dialect/Nn/ShardingRules",
    "Dialect/Nn/Gradients": "Dialect/Nn/IR",
    "Dialect/Exec/IR": "Program Dialect/Spmd/IR Dialect/Nn/IR",
    "Dialect/Pipe/IR": "Sharding Dialect/Spmd/IR Dialect/Nn/IR",
    "Dialect/Exec/Fusion": "Sharding Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR",
    "Cost": "Program Support Sharding Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Exec/Fusion Dialect/Pipe/IR",
    "Reference": "Program Support Sharding Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Pipe/IR",
    "Codegen": "Support Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR",
    "Dialect/Exec/Memory": "Support Sharding Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Pipe/IR Dialect/Exec/Fusion Codegen/KernelRules.h",
    "Dialect/Exec/Rings": "Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR",
    "Dialect/Exec/Kernels": "Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Exec/Fusion",
    "Dialect/Nn/Patterns": "Dialect/Nn/IR",
    "Dialect/Spmd/Annotations": "Support Plan Dialect/Spmd/IR",
    "Dialect/Nn/Training": "Plan Dialect/Spmd/IR Dialect/Nn/IR Dialect/Nn/Gradients Dialect/Spmd/Annotations",
    "Dialect/Spmd/Deciding": "Sharding Solver Dialect/Spmd/IR",
    "Dialect/Spmd/Resharding": "Sharding Dialect/Spmd/IR Dialect/Spmd/Deciding",
    "Dialect/Pipe/Microbatches": "Plan Transforms Dialect/Spmd/IR Dialect/Nn/IR Dialect/Pipe/IR",
    "Dialect/Pipe/Stages": "Support Plan Schedule Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Pipe/IR Cost",
    "EmulatedKernels": "Emulation Support Codegen",
    "Dialect/Nn/Transforms": "Support Transforms Dialect/Spmd/IR Dialect/Nn/IR Dialect/Nn/Gradients Dialect/Nn/Patterns Dialect/Nn/Training",
    "Dialect/Spmd/Transforms": "Sharding Transforms Dialect/Spmd/IR Dialect/Spmd/Annotations Dialect/Spmd/Deciding Dialect/Spmd/Resharding",
    "Dialect/Exec/Transforms": "Plan Solver Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Exec/Fusion Dialect/Pipe/IR Cost Codegen/Device/Regions.h "
                               "Codegen/Library/Libraries.h Dialect/Exec/Kernels Dialect/Exec/Memory Dialect/Exec/Rings Dialect/Spmd/Transforms",
    "Dialect/Pipe/Transforms": "Schedule Transforms Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Pipe/IR Dialect/Pipe/Microbatches Dialect/Pipe/Stages "
                               "Dialect/Nn/Transforms Dialect/Spmd/Annotations",
    "Import": "Support Onnx Dialect/Spmd/IR Dialect/Nn/IR Dialect/Nn/Gradients Reference",
    "Annotations": "Program Support Sharding Plan Onnx Dialect/Spmd/IR Dialect/Nn/IR Dialect/Pipe/IR Dialect/Pipe/Stages",
    "Export": "Program Arrays/Safetensors.h Support Onnx Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Pipe/IR Reference Annotations",
    "Pipelines": "Program Sharding Cost Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Pipe/IR Dialect/Pipe/Stages "
                 "Dialect/Nn/Transforms Dialect/Spmd/Transforms Dialect/Exec/Transforms Dialect/Pipe/Transforms",
    "Assembly": "Program Support Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Pipe/IR Reference Codegen EmulatedKernels",
    "Compiler": "Program Runtime Support Sharding Plan Search Schedule Onnx Dialect/Spmd/IR Dialect/Nn/IR Dialect/Exec/IR Dialect/Pipe/IR Reference Codegen "
                "Dialect/Spmd/Annotations Dialect/Spmd/Deciding Dialect/Pipe/Stages Dialect/Pipe/Microbatches Dialect/Nn/Transforms Dialect/Spmd/Transforms "
                "Dialect/Exec/Transforms Dialect/Pipe/Transforms Import Annotations Export Pipelines Assembly",
    "Driver": "Program Runtime Runner Support Sharding Plan Schedule Export Pipelines Compiler",
}
