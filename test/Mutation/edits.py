"""Small errors, one line each, that suites must report. check.py says how they are tried.

Not here, because they change nothing that can be seen: that an aligned slice starts within its first step (its verifier
says so: it would leave its operand), and that elimination keeps what is forbidden apart when it normalises a table (what
is taken off is added to the total, and sums end at forbidden).
"""
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
READER = "CleaveOnnxReaderTests"
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
    Edit("cast-to-integer-is-linear", "lib/Dialect/Nn/ShardingRules/Conversion.cpp",
         "isa<FloatType>(elementTypeOf(getInput())) && isa<FloatType>(elementTypeOf(getResult()))",
         "isa<FloatType>(elementTypeOf(getInput()))",
         "a cast of a float to an integer lets partial sums pass", ["lit:Nn/Rules/conversion"]),
    Edit("padded-windows-are-patches", "lib/Dialect/Nn/ShardingRules/Rules.cpp", "padLow == 0 && padHigh == 0",
         "padHigh == 0", "windows with padding before them are taken for patches",
         ["lit:Nn/Rules/convolution"]),
    Edit("rule-rounds-down", "lib/Dialect/Nn/ShardingRules/Resize.cpp", "op.getRounding() == NearestMode::Floor",
         "op.getRounding() == NearestMode::Floor || op.getRounding() == NearestMode::RoundPreferFloor",
         "a rule takes round_prefer_floor for floor", ["lit:Nn/Rules/resize"]),
    Edit("rule-rounds-to-nearest", "lib/Dialect/Nn/ShardingRules/Resize.cpp",
         "op.getRounding() == NearestMode::RoundPreferFloor || op.getRounding() == NearestMode::RoundPreferCeil",
         "op.getRounding() != NearestMode::Ceil",
         "a rule takes floor for round_prefer_floor", ["lit:Nn/Rules/resize"]),
    Edit("flops-of-cut-head-size", "lib/Dialect/Nn/ShardingRules/Attention.cpp", "OpRule::present({b, k, g, s, t})",
         "OpRule::present({b, k, g, s, t, v})", "attention's flops shrink when the value's head size is cut",
         ["lit:Spmd/Transforms/propagate"]),
    # ===--- Partition -------------------------------------------------------===
    Edit("identity-of-bool-maximum", "lib/Reference/Arithmetic.h", "isMax ? C(0) : C(1)", "isMax ? C(1) : C(0)",
         "a bool made partial by maximum is true on all ranks", [REFERENCE, "lit:Execute/partial"]),
    Edit("cumsum-totals-in-f16", "lib/Dialect/Nn/Partition/Reduction.cpp",
         "isa<FloatType>(elementType) ? build.widen(context.operands[0]) : context.operands[0]", "context.operands[0]",
         "a running sum of f16 adds the totals of other ranks in f16", ["lit:Execute/running-sums"]),
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
    Edit("quantize-10-axis", "lib/Import/Onnx/Conversion.cpp", "node.getOpset() >= 13", "node.getOpset() >= 10",
         "QuantizeLinear 10 takes an axis", [OPSETS, "lit:InvalidNodes/layers"]),
    Edit("quantize-10-default-axis", "lib/Import/Onnx/Conversion.cpp", "node.axis(axis, rank)",
         "node.axis(node.getOpset() < 13 ? 0 : axis, rank)",
         "QuantizeLinear 10 scales along dim 0", [OPSETS]),
    Edit("einsum-without-arrow", "lib/Import/Onnx/Contraction.cpp", "llvm::sort(once);", "",
         "Einsum without -> leaves the letters as they come", [OPSETS]),
    Edit("power-of-integer-by-float", "lib/Import/Onnx/Elementwise.cpp",
         "isa<FloatType>(exponentType) && !isa<FloatType>(type)", "false",
         "an integer to the power of a float rounds the exponent", [OPSETS]),
    Edit("max-pool-10-ceil", "lib/Import/Onnx/Convolution.cpp", "node.getOpset() >= 10", "node.getOpset() >= 12",
         "MaxPool before 12 has no ceil_mode", [OPSETS], after="importMaxPool"),
    # ===--- Report and driver -----------------------------------------------===
    Edit("buffers-end-at-the-last-read", "lib/Support/Liveness.cpp", "std::max(intervals[buffer].last, step)", "step",
         "a buffer ends where it was read last of all, not at its latest reader", ["CleaveSupportTests"]),
    Edit("buffers-end-a-step-early", "lib/Support/Liveness.cpp", "interval.last + 1", "interval.last",
         "an op may write where it still reads", ["CleaveSupportTests", "lit:Pipelines/report"]),
    Edit("operands-end-at-once", "lib/Pipelines/Report.cpp", "liveness.use(buffers.lookup(operand), step);", "",
         "an operand is gone as soon as it is made", ["lit:Pipelines/report"]),
    Edit("table-joins-shapes", "lib/Pipelines/Report.cpp", "a.operandShape == b.operandShape", "true",
         "the table joins collectives of different shapes", ["lit:Pipelines/report", "lit:Driver"]),
    Edit("explain-hides-conflicts", "lib/Driver/Explain.cpp", 'link.isEscape ? ", to avoid a conflict" : ""', '""',
         "explain does not say what gives way to a conflict", ["lit:Driver/explain"]),
    # ===--- More of the solver ----------------------------------------------===
    Edit("repeated-compute-is-free", "lib/Solver/Objective.cpp", "std::max(0.0, form.flops - fairShare)", "0.0",
         "repeating what others compute costs nothing", [SOLVER]),
    Edit("escapes-cost-the-same", "lib/Solver/Objective.cpp", "surcharge = model.escapeSurcharge;", "",
         "a way around a conflict is as good as the wish", [SOLVER, "golden"]),
    Edit("parameters-move-lightly", "lib/Solver/Objective.cpp", "surcharge += model.parameterSurcharge;", "",
         "Megatron's weights are gathered at small batches", [SOLVER, "golden"]),
    Edit("all-reduce-at-half-price", "lib/Solver/Forms.cpp", "isGather ? 1 : 2", "1",
         "statistics of a norm cost half of what they send", [SOLVER]),
    Edit("forms-mix-kinds", "lib/Solver/Forms.cpp", "draft.isMixed |= draft.kind && draft.kind != choice.partial;", "",
         "one value is partial as a sum and as a maximum", [SOLVER, "differential:--count 300"]),
    Edit("minor-cut-under-open-major", "lib/Solver/Forms.cpp", "!cuts.empty() && !isFull", "false",
         "a minor factor is cut although its major is whole", [SOLVER, "golden"]),
    Edit("uneven-cuts", "lib/Solver/Forms.cpp", "rule.factorSizes[factor] % shards != 0", "false",
         "an axis cuts what it does not divide", [SOLVER, "golden"]),
    Edit("minor-factor-leaks", "lib/Solver/Candidates.cpp", "return false;", "continue;",
         "a cut sequence gets out into a flattened batch", [SOLVER], after="bool Candidates::majorsCanBeFull"),
    Edit("open-dims-take-replicated", "lib/Solver/Candidates.cpp",
         "mask &= ~maskOf(wish->replicated) & ~maskOf(wish->partial);", "mask &= ~maskOf(wish->partial);",
         "an axis that is to stay whole cuts an open dim", [SOLVER]),
    Edit("refusals-are-not-told", "lib/Solver/Candidates.cpp", "refused.push_back({node, factor, atom});", "",
         "no remark says that an axis does not divide", [SOLVER]),
    # ===--- More of the algebra of shardings --------------------------------===
    Edit("exchange-forgets-copies", "lib/Sharding/Exchange.cpp", "copies *= mesh.size(atom);", "",
         "an exchange to copies is too cheap", [SHARDING]),
    Edit("reduction-sends-once", "lib/Sharding/ReshardRoute.cpp", "2 * (group - 1) * sizes.before",
         "(group - 1) * sizes.before",
         "an all_reduce counts half of its bytes", [SHARDING]),
    Edit("reduction-costs-once", "lib/Sharding/ReshardRoute.cpp", "2 * ring.perPiece * sizes.before",
         "ring.perPiece * sizes.before", "an all_reduce costs half", [SHARDING]),
    Edit("shards-nest-always", "lib/Sharding/ReshardRoute.cpp",
         "shardExtent(mesh, extent, wide) == pieces * shardExtent(mesh, extent, narrow)", "true",
         "shards that do not nest are gathered", [SHARDING]),
    Edit("rule-cuts-a-minor-factor", "lib/Sharding/RuleMatch.cpp", "!isFull && !atoms.empty()", "false",
         "a dim in pieces that an op cannot take is let through", [SHARDING]),
    Edit("dear-copy-never-first", "lib/Sharding/ServeWants.cpp", "totalCost(served) < totalCost(best)", "false",
         "a gather that would make slices free comes last", [SHARDING]),
    # ===--- More of plans and attributes ------------------------------------===
    Edit("leading-star-costs", "lib/Plan/NamePattern.cpp", "row[0] += !isStar;", "row[0] += 1;",
         "a pattern that begins with * is far from every name", [PLAN]),
    Edit("sub-axis-reads-wrong-digit", "lib/Sharding/RankGroups.cpp",
         "axisSizes[axis.axis] / (axis.preSize * axis.size)", "axis.preSize",
         "a rank's place along a sub-axis is that of another digit", [DIALECT, SHARDING]),
    Edit("partners-with-other-digits", "lib/Sharding/ShardMoves.cpp", "digit != mesh.coordinate(rank, atom)", "false",
         "pieces of a change of sharding come from ranks outside the group", [SHARDING]),
    Edit("shards-need-not-divide", "lib/Dialect/Spmd/IR/Attributes.cpp", "!getUneven() && extent % shards != 0", "false",
         "a type may have shards that do not divide", ["lit:Spmd/IR"]),
    # ===--- More rules ------------------------------------------------------===
    Edit("integer-division-is-linear", "lib/Dialect/Nn/ShardingRules/Elementwise.cpp", "isa<FloatType>(elementTypeOf(getLhs()))",
         "true", "terms of integers are divided one by one", ["lit:Nn/Rules/elementwise"]),
    Edit("product-of-terms", "lib/Dialect/Nn/ShardingRules/Elementwise.cpp", "getPointwiseRule(*this, {{0}, {1}})",
         "getPointwiseRule(*this, {{0, 1}})", "terms are multiplied by terms", [PARTITION]),
    Edit("slice-with-a-rest", "lib/Dialect/Nn/ShardingRules/Movement.cpp", "extent == size * step",
         "extent >= size * step", "a strided slice that leaves elements over counts as aligned",
         [PARTITION, "lit:Nn/Rules/movement"]),
    Edit("padding-behind-is-local", "lib/Dialect/Nn/ShardingRules/Movement.cpp",
         "getLow()[dim] != 0 || getHigh()[dim] != 0", "getLow()[dim] != 0",
         "a dim that is padded behind is cut", [PARTITION, "lit:Nn/Rules/movement"]),
    Edit("gather-of-first-elements", "lib/Dialect/Nn/ShardingRules/Indexing.cpp", "isLooked || extent == input[dim]",
         "true", "indices of the first elements line up with shards", [PARTITION, "lit:Nn/Rules/indexing"]),
    Edit("scattered-maxima-add-up", "lib/Dialect/Nn/ShardingRules/Indexing.cpp",
         "kind == ScatterKind::Add || kind == ScatterKind::Set", "true", "terms are scattered by maximum",
         [PARTITION, "lit:Nn/Rules/indexing"]),
    # ===--- More of the partition -------------------------------------------===
    Edit("mean-of-means-added", "lib/Dialect/Nn/Partition/Reduction.cpp", "getKind() != ReduceKind::Mean", "true",
         "a mean over ranks is the sum of their means", [PARTITION]),
    Edit("last-maximum-is-first", "lib/Dialect/Nn/Partition/Reduction.cpp",
         "getLast() ? ReductionKind::Max : ReductionKind::Min", "ReductionKind::Min",
         "of equal maxima on several ranks the first one counts as the last", [PARTITION]),
    Edit("iota-offset-without-step", "lib/Dialect/Nn/Partition/Data.cpp", "build.shardOffset(axes, extent * step)",
         "build.shardOffset(axes, extent)", "a cut iota starts in the wrong place", [PARTITION]),
    Edit("lookup-outside-counts", "lib/Dialect/Nn/Partition/Indexing.cpp", "build.zeroLike(found)", "found",
         "a rank adds what it looked up outside its shard", [PARTITION], after="LogicalResult GatherOp::partition"),
    Edit("negative-one-hot", "lib/Dialect/Nn/Partition/Indexing.cpp",
         "build.select(isNegative, build.add(index, build.position(getDepth())), index)", "index",
         "a negative index of a cut one-hot is nowhere", [PARTITION]),
    Edit("group-norm-keeps-groups", "lib/Dialect/Nn/Partition/Normalization.cpp",
         "groups /= context.getExtent(context.cuts[factor]);", "", "a rank with half of the groups normalises over all",
         [PARTITION]),
    Edit("mean-of-one-rank", "lib/Dialect/Nn/Partition/Normalization.cpp", "elements *= context.getExtent(axes);", "",
         "a mean over cut dims divides by a rank's elements", [PARTITION]),
    Edit("causal-without-offset", "lib/Dialect/Nn/Partition/Attention.cpp",
         "build.add(queries, build.position(op.getCausalOffset()))", "queries",
         "cut causal attention forgets the past keys", [PARTITION]),
    Edit("query-that-sees-nothing", "lib/Dialect/Nn/Partition/Attention.cpp",
         "maximum = build.select(build.isEqual(maximum, minusInfinity()), number(0), maximum);", "",
         "a query that sees no key is NaN where keys are cut", [PARTITION, "lit:Execute/attention"]),
    # ===--- More of the canonical form --------------------------------------===
    Edit("any-product-is-gelu", "lib/Dialect/Nn/Transforms/RecomposeGelu.cpp", "!isClose(product.constant, 0.5)", "false",
         "x (1 + erf(..)) without the half becomes a GELU", ["lit:recompose-gelu"]),
    Edit("overlapping-slices-split", "lib/Dialect/Nn/Transforms/SplitWeights.cpp",
         "pieces[i].first < pieces[i - 1].second", "false", "a dot is computed twice where slices overlap",
         ["lit:split-weights"]),
    # ===--- More of the evaluator -------------------------------------------===
    Edit("average-skips-padding", "lib/Reference/Convolution.cpp", "op.getCountPads() ? padded : window.shape.back()",
         "window.shape.back()", "an average over windows never counts padding", [REFERENCE, OPSETS]),
    Edit("reflection-repeats-the-edge", "lib/Reference/Movement.cpp", "2 * (size - 1) - position",
         "2 * size - 1 - position", "padding by reflection repeats the last element", [REFERENCE, OPSETS]),
    Edit("lower-triangle-without-diagonal", "lib/Reference/Movement.cpp", "std::max<int64_t>(border + 1, 0)",
         "std::max<int64_t>(border, 0)", "a lower triangle loses its diagonal", [REFERENCE, OPSETS]),
    Edit("scan-ignores-reverse", "lib/Reference/Reduction.cpp", "op.getReverse() ? lines.size - 1 - i : i", "i",
         "a running sum from the end runs from the start", [REFERENCE, OPSETS]),
    Edit("ties-to-the-last", "lib/Reference/Reduction.cpp", "!isBetter(second, first, smallest) && a < b",
         "!isBetter(second, first, smallest) && a > b", "of equal elements top_k takes the last", [REFERENCE]),
    Edit("key-heads-interleaved", "lib/Reference/Attention.cpp", "head / (heads / kvHeads)", "head % kvHeads",
         "query heads read the keys of another group", [REFERENCE]),
    Edit("even-lrn-window", "lib/Reference/Normalization.cpp", "channel - (size - 1) / 2", "channel - size / 2",
         "an even window over channels is one too wide", [REFERENCE, "onnx:test_lrn test_lrn_default", OPSETS]),
    # ===--- More of the importer --------------------------------------------===
    Edit("numbers-of-33-bits", "lib/Import/Onnx/WireReader.cpp", "wide < INT32_MIN || wide > INT32_MAX", "false",
         "a number that does not fit 32 bits is cut off", [READER]),
    Edit("bools-of-two", "lib/Import/Onnx/TensorData.cpp", "static_cast<uint8_t>(byte) > 1", "false",
         "a bool may be 2", [READER]),
    Edit("external-data-keys-twice", "lib/Import/Onnx/TensorData.cpp", "is_contained(seen, entry.key)", "false",
         "external data may have two offsets", [READER]),
    Edit("slice-backwards-to-the-end", "lib/Import/Onnx/Movement.cpp", "clamp((*ends)[i], -1, extent - 1)",
         "clamp((*ends)[i], 0, extent - 1)", "a slice backwards loses element 0", [OPSETS]),
    Edit("depth-to-space-mode", "lib/Import/Onnx/Movement.cpp", 'mode == "DCR"', "true",
         "DepthToSpace ignores CRD", [OPSETS], after="Value y;"),
    Edit("softmax-11-on-one-dim", "lib/Import/Onnx/Reduction.cpp", "node.getOpset() < 13", "false",
         "Softmax before 13 does not flatten", [OPSETS]),
    Edit("reduce-sum-13-axes", "lib/Import/Onnx/Reduction.cpp", 'node.getOpType() == "ReduceSum" ? 13 : 18', "18",
         "ReduceSum 13 to 17 reads its axes from an attribute", [OPSETS]),
    Edit("gemm-without-beta", "lib/Import/Onnx/Contraction.cpp", "beta != 1.0", "false", "Gemm ignores beta", [OPSETS]),
    # ===--- More of report and driver ---------------------------------------===
    Edit("totals-stay-zero", "lib/Pipelines/Report.cpp", "total.wireBytes += report.collectives.back().wireBytes;", "",
         "the bytes of all collectives are zero", ["lit:Pipelines/report"]),
    Edit("differences-pass", "lib/Compiler/Compare.cpp", "difference.position < 0 && !isClose", "false",
         "--check never fails", ["lit:Driver/check"]),
]
