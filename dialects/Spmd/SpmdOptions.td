//===- SpmdOptions.td - what can be asked of the passes -----*- tablegen -*-===//
//
// Every option that a user sets and a pass takes, stated once. SpmdPasses.td makes options of passes of these records, and
// of `spmd-shard`; lib/Driver/Options.td makes flags of `cleave`; ShardOptions (Phases.h) has them all as members.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SPMD_OPTIONS
#define CLEAVE_SPMD_OPTIONS

/// `type` is what an option with one argument holds; a list may be given more than once. As a flag it stands in `group` of
/// the help, with `argument` (a switch has none); without a group it is none.
class ShardOption<string member, string name, string type, string default, string help, string argument = "",
                  string group = "", bit isList = false, string values = ""> {
  string Member = member;
  string Name = name;
  string Type = type;
  string Default = default;
  string Help = help;
  string Argument = argument;
  string FlagGroup = group;
  bit IsList = isList;
  string Values = values;
}

/// Of spmd-pin-annotations and spmd-annotate.
defvar kPlanOptions = [
  ShardOption<"plan", "plan", "std::string", "", "plan file: mesh, dims, sharding rules", "FILE", "Sharding">,
  ShardOption<"mesh", "mesh", "std::string", "", "named axes, major to minor; overrides the plan's", "data=2,model=4",
              "Sharding">,
  ShardOption<"shard", "shard", "std::string", "", "one rule of a plan; may repeat", "'PATTERN=[data, _]'", "Sharding",
              /*isList=*/true>,
  ShardOption<"state", "state", "std::string", "", "inputs that the next call finds as outputs have left them; may repeat",
              "'PAST=PRESENT'", "Sharding", /*isList=*/true>,
  ShardOption<"free", "free", "bool", "false",
              "every axis may cut whatever it can where no rule says otherwise: what takes least time on the cluster", "", "Sharding">,
  ShardOption<"uneven", "uneven", "bool", "false",
              "axes need not divide what they split: the last shards are padded; without it such dims are replicated", "", "Sharding">,
];

/// Of spmd-propagate.
defvar kPropagateOptions = [
  ShardOption<"optimize", "optimize", "::cleave::spmd::Optimize", "::cleave::spmd::Optimize::Balanced",
              "bytes on the wire alone, balanced with compute and surprises, or time on a cluster", "WHAT", "Sharding", /*isList=*/false,
              "::cleave::spmd::getOptimizeValues()">,
  ShardOption<"keepPlan", "keep-plan", "bool", "false",
              "parameters that the plan splits stay where they are, whatever that costs", "", "Sharding">,
  ShardOption<"attention", "attention", "::cleave::spmd::AttentionMethod", "::cleave::spmd::AttentionMethod::Auto",
              "where queries are cut along the sequence: keys and values gathered, in a ring, or by price (auto, or as the plan says)",
              "FORM", "Sharding", /*isList=*/false, "::cleave::spmd::getAttentionValues()">,
  ShardOption<"memoryPrice", "memory-price", "double", "0",
              "nanoseconds that 1 MB of parameters and states in the memory of a rank counts, where axes are free">,
  ShardOption<"traceDecisions", "trace-decisions", "bool", "false",
              "prints the candidates of each decision, with their prices, to standard error", "", "Printing">,
];

/// Of spmd-partition.
defvar kPartitionOptions = [
  ShardOption<"checkBytes", "check-bytes", "bool", "false",
              "fails if the collectives send other bytes than were decided (spmd.wire_bytes)">,
];

#endif // CLEAVE_SPMD_OPTIONS
