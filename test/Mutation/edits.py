"""Small errors, one line each, that suites must report. check.py says how they are tried."""
from dataclasses import dataclass


@dataclass
class Edit:
    name: str
    file: str
    old: str
    new: str
    # What is wrong with it, as a user would see it.
    breaks: str
    # `suite` or `suite:filter`, tried in this order.
    suites: list
    # Where `old` stands more than once: the first one behind this text is meant.
    after: str = ""


SOLVER = "CleaveSolverTests"
SHARDING = "CleaveShardingTests"
PLAN = "CleavePlanTests"
DIALECT = "CleaveDialectTests"
PARTITION = "CleavePartitionTests"
REFERENCE = "CleaveReferenceTests"
OPSETS = "lit:Import/opsets"

EDITS = [
    # ===--- Solver ----------------------------------------------------------===
    Edit("wish-dims-all-at-once", "lib/Solver/Candidates.cpp", "wished.priority <= level", "true",
         "every dim of a wish counts at once, whatever its priority", [SOLVER, "lit:Spmd/Transforms/propagate"],
         after="State Candidates::wishedState"),
    Edit("early-cuts-do-not-stay", "lib/Solver/Solver.cpp", "stays[node] |= maskOf(atom);", "",
         "what earlier priorities cut does not stay", [SOLVER, "lit:Spmd/Transforms/propagate"]),
    Edit("wishes-equal-but-for-priority", "lib/Solver/Problem.cpp", "lhs.priority == rhs.priority", "true",
         "two rules that differ in priority only count as one", [SOLVER, "lit:Spmd/Transforms/propagate", "lit:annotate"]),
    Edit("order-of-atoms-from-mesh", "lib/Solver/Solver.cpp", "votes[other * numAtoms + atom] > 0", "false",
         "axes of a dim stand in mesh order against the wishes", [SOLVER, "lit:Spmd/Transforms/propagate"]),
    Edit("one-round", "lib/Solver/Solver.cpp", "round < options.maxRounds", "round < 1",
         "the solver stops after one round of sweeps", [SOLVER]),
    Edit("freezes-another-neighbour", "lib/Solver/Elimination.cpp",
         "std::pair(degrees[candidate], domains[candidate]) > std::pair(degrees[busiest], domains[busiest])",
         "std::pair(degrees[candidate], domains[candidate]) < std::pair(degrees[busiest], domains[busiest])",
         "elimination freezes the least busy neighbour", [SOLVER]),
    Edit("no-escape-in-chains", "lib/Solver/Explain.cpp",
         "(next == node || (isLast && from != kNone)) && !(candidates.base(node, factor) & maskOf(atom))", "false",
         "a chain does not say which link gives way to a conflict", [SOLVER, "lit:Driver/explain"]),
    # ===--- Reshards --------------------------------------------------------===
    Edit("no-slice-between-exchanges", "lib/Sharding/ReshardRoute.cpp", "sliceInPlace();", "",
         "nothing is sliced between rounds of all_to_all", [SHARDING],
         after="round < problem.mesh.numAtoms()"),
    # ===--- Plans -----------------------------------------------------------===
    Edit("escaped-brace", "lib/Plan/NamePattern.cpp", '!before.ends_with("\\\\")', "true",
         "an escaped brace of a pattern is taken for a group", [PLAN]),
    Edit("bracket-in-braces", "lib/Plan/NamePattern.cpp", 'rest.find_first_of("{}[\\\\")', 'rest.find_first_of("{}\\\\")',
         "a set [..] inside braces is not seen", [PLAN]),
    Edit("set-is-literal", "lib/Plan/NamePattern.cpp", 'StringRef(matcher->text).find_first_of("*?[{\\\\")',
         'StringRef(matcher->text).find_first_of("*?{\\\\")',
         "a pattern with a set [..] counts as a name", [PLAN, "lit:Plan/"]),
    # ===--- Sharding rules --------------------------------------------------===
    Edit("cast-to-integer-is-linear", "lib/Dialect/Nn/ShardingRules/Elementwise.cpp",
         "isFloat(getInput()) && isFloat(getResult())", "isFloat(getInput())",
         "a cast of a float to an integer lets partial sums pass", [PARTITION, "lit:Nn/Rules/elementwise"]),
    Edit("padded-windows-are-patches", "lib/Dialect/Nn/ShardingRules/Rules.cpp", "padLow == 0 && padHigh == 0",
         "padHigh == 0", "windows with padding before them are taken for patches",
         [PARTITION, "lit:Nn/Rules/convolution"]),
    Edit("rule-rounds-down", "lib/Dialect/Nn/ShardingRules/Convolution.cpp", "op.getRounding() == NearestMode::Floor",
         "op.getRounding() == NearestMode::Floor || op.getRounding() == NearestMode::RoundPreferFloor",
         "a rule takes round_prefer_floor for floor", [PARTITION, "lit:Nn/Rules/convolution"]),
    Edit("rule-rounds-to-nearest", "lib/Dialect/Nn/ShardingRules/Convolution.cpp",
         "op.getRounding() == NearestMode::RoundPreferFloor || op.getRounding() == NearestMode::RoundPreferCeil",
         "op.getRounding() != NearestMode::Ceil",
         "a rule takes floor for round_prefer_floor", [PARTITION, "lit:Nn/Rules/convolution"]),
    Edit("flops-of-cut-head-size", "lib/Dialect/Nn/ShardingRules/Attention.cpp", "OpRule::present({b, k, g, s, t})",
         "OpRule::present({b, k, g, s, t, v})", "attention's flops shrink when the value's head size is cut",
         [PARTITION, "lit:Nn/Rules/attention", "lit:propagate"]),
    # ===--- Partition -------------------------------------------------------===
    Edit("identity-of-bool-maximum", "lib/Dialect/Spmd/Transforms/EmitReshard.cpp",
         "type.isUnsignedInteger() || width == 1", "type.isUnsignedInteger()",
         "a bool made partial by maximum is true on all ranks", ["lit:Execute/partial"]),
    Edit("identity-of-bool-in-evaluator", "lib/Reference/Arithmetic.h", "isMax ? C(0) : C(1)", "isMax ? C(1) : C(0)",
         "the evaluator hands out a bool in terms of another kind", [REFERENCE, "lit:Execute/partial"]),
    Edit("cumsum-totals-in-f16", "lib/Dialect/Nn/Partition/Reduction.cpp",
         "isa<FloatType>(elementType) ? build.widen(context.operands[0]) : context.operands[0]", "context.operands[0]",
         "a running sum of f16 adds the totals of other ranks in f16", [PARTITION, "lit:Execute/r"]),
    # ===--- Dialects --------------------------------------------------------===
    Edit("touching-sub-axes-of-plan", "lib/Plan/PlanCheck.cpp", "rhs.preSize < lhs.preSize * plan.getExtent(lhs)",
         "rhs.preSize <= lhs.preSize * plan.getExtent(lhs)", "sub-axes of a plan that only touch count as overlapping",
         [PLAN]),
    Edit("touching-sub-axes-overlap", "lib/Dialect/Spmd/IR/AxisLists.cpp", "lhs.getPreSize() < rhsEnd",
         "lhs.getPreSize() <= rhsEnd", "sub-axes that only touch count as overlapping", [DIALECT, "lit:Spmd/IR"]),
    Edit("touching-sub-axes-overlap-2", "lib/Dialect/Spmd/IR/AxisLists.cpp", "rhs.getPreSize() < lhsEnd",
         "rhs.getPreSize() <= lhsEnd", "sub-axes that only touch count as overlapping", [DIALECT, "lit:Spmd/IR"]),
    # ===--- Canonical form --------------------------------------------------===
    Edit("fused-weight-used-on-the-way", "lib/Dialect/Nn/Transforms/SplitWeights.cpp",
         "!way.empty() && !value.hasOneUse()", "false",
         "a fused weight is split although something else reads a value on the way", ["lit:split-weights", "lit:fused-weights"]),
    # ===--- Evaluator -------------------------------------------------------===
    Edit("convolution-loses-last-window", "lib/Reference/Convolution.cpp", "(channel[last] - 1 - first) / stride + 1",
         "(channel[last] - first) / stride", "a convolution loses its last window with stride and dilation",
         [REFERENCE, OPSETS]),
    Edit("evaluator-rounds-down", "lib/Reference/Resize.cpp", "rest > 0.5", "false",
         "the evaluator takes round_prefer_floor for floor", [REFERENCE, OPSETS]),
    # ===--- Importer --------------------------------------------------------===
    Edit("group-norm-18-per-group", "lib/Import/Onnx/Normalization.cpp",
         "node.broadcast(node.reshape(value, {groups, 1}), {groups, channels / groups})",
         "node.broadcast(node.reshape(value, {1, groups}), {channels / groups, groups})",
         "GroupNormalization 18 hands its scales to the wrong channels", [OPSETS]),
    Edit("resize-10-rounding", "lib/Import/Onnx/Resize.cpp", "nn::NearestMode::Floor", "nn::NearestMode::RoundPreferFloor",
         "Resize 10 rounds to the nearest", [OPSETS]),
    Edit("resize-10-shrinks-down", "lib/Import/Onnx/Resize.cpp", "behind.rounding = nn::NearestMode::Ceil;", "",
         "Resize 10 rounds down where a dim shrinks", [OPSETS]),
    Edit("quantize-10-axis", "lib/Import/Onnx/Quantization.cpp", "node.getOpset() >= 13", "node.getOpset() >= 10",
         "QuantizeLinear 10 takes an axis", [OPSETS, "lit:InvalidNodes/layers"]),
    Edit("quantize-10-default-axis", "lib/Import/Onnx/Quantization.cpp", "node.axis(axis, rank)",
         "node.axis(node.getOpset() < 13 ? 0 : axis, rank)",
         "QuantizeLinear 10 scales along dim 0", [OPSETS]),
    Edit("einsum-without-arrow", "lib/Import/Onnx/Contraction.cpp", "llvm::sort(once);", "",
         "Einsum without -> leaves the letters as they come", [OPSETS]),
    Edit("power-of-integer-by-float", "lib/Import/Onnx/Elementwise.cpp",
         "isa<FloatType>(exponentType) && !isa<FloatType>(type)", "false",
         "an integer to the power of a float rounds the exponent", [OPSETS]),
    Edit("max-pool-10-ceil", "lib/Import/Onnx/Pooling.cpp", "node.getOpset() >= 10", "node.getOpset() >= 12",
         "MaxPool before 12 has no ceil_mode", [OPSETS], after="importMaxPool"),
    # ===--- Report and driver -----------------------------------------------===
    Edit("operand-used-twice-freed-twice", "lib/Pipelines/Report.cpp", "freed.insert(operand).second", "true",
         "peak memory falls twice for an operand used twice", ["lit:Pipelines/report"]),
    Edit("table-joins-shapes", "lib/Pipelines/Report.cpp", "a.operandShape == b.operandShape", "true",
         "the table joins collectives of different shapes", ["lit:Pipelines/report", "lit:Driver"]),
    Edit("explain-hides-conflicts", "lib/Driver/Explain.cpp", 'link.isEscape ? ", to avoid a conflict" : ""', '""',
         "explain does not say what gives way to a conflict", ["lit:Driver/explain"]),
]
