//===- PlanTest.cpp - plans: what is read, what is refused ----------------===//
#include "cleave/Plan/Plan.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/ProposeStates.h"
#include "gtest/gtest.h"

using namespace cleave;
using namespace cleave::spmd;
using llvm::StringRef;

namespace {

/// The plan of `text`; its error's text where it has one.
struct Parsed {
  explicit Parsed(StringRef text) {
    PlanError failure;
    bool isGood = succeeded(parsePlan(text, "p.yaml", plan, failure)) && succeeded(checkPlan(plan, failure));
    error = isGood ? "" : failure.format();
  }
  Plan plan;
  std::string error;
};

TEST(Plan, ReadsAMeshInOrder) {
  Parsed parsed("mesh: {model: 4, data: 2}\ndevices: [7, 6, 5, 4, 3, 2, 1, 0]\ndims: {batch: 8}\n");
  ASSERT_EQ(parsed.error, "");
  ASSERT_EQ(parsed.plan.mesh.size(), 2u);
  EXPECT_EQ(parsed.plan.mesh[0].name, "model");
  EXPECT_EQ(parsed.plan.mesh[1].size, 2);
  EXPECT_EQ(parsed.plan.devices.front(), 7);
  EXPECT_EQ(parsed.plan.dims.at("batch"), 8);
}

TEST(Plan, DevicesMayStandInsideTheMesh) {
  Parsed parsed("mesh: {data: 2, model: 2, devices: [3, 2, 1, 0]}\n");
  ASSERT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.plan.mesh.size(), 2u);
  EXPECT_EQ(parsed.plan.devices, (std::vector<int64_t>{3, 2, 1, 0}));
  EXPECT_EQ(Parsed("mesh: {a: 2, devices: [1, 0]}\ndevices: [0, 1]").error,
            "p.yaml:2:10: error: devices is given twice\n");
}

TEST(Plan, ReadsEveryFormOfADim) {
  Parsed parsed("mesh: {a: 2, b: 4, c: 2}\nshard:\n"
                "  - {tensor: x, dims: [_, ?, a, \"c?\", \"b:(2)2\"]}\n"
                "  - {tensor: y, dims: [[a, b], [c, ?]]}\n"
                "  - {tensor: z, dims: [ ? , ?]}\n"
                "  - tensor: w\n    dims:\n      - a\n      - \"?\"\n");
  ASSERT_EQ(parsed.error, "");
  const std::vector<PlanRule> &rules = parsed.plan.rules;
  EXPECT_EQ(rules[0].formatDims(), "[_, ?, a, c?, b:(2)2]");
  EXPECT_EQ(rules[0].dims[4].axes[0].preSize, 2);
  EXPECT_EQ(rules[1].formatDims(), "[[a, b], c?]");
  EXPECT_EQ(rules[2].formatDims(), "[?, ?]");
  EXPECT_EQ(rules[3].formatDims(), "[a, ?]");
}

TEST(Plan, ReadsTheRestOfARule) {
  Parsed parsed("mesh: {a: 2}\nshard:\n"
                "  - {node: \"*/q\", operand: 1, dims: [_], priority: 3, replicated: [a], uneven: true}\n"
                "  - {node: n, result: 2, dims: []}\n");
  ASSERT_EQ(parsed.error, "");
  const PlanRule &rule = parsed.plan.rules[0];
  EXPECT_EQ(rule.target, PlanRule::Target::Operand);
  EXPECT_EQ(rule.pattern, "*/q");
  EXPECT_EQ(rule.index, 1u);
  EXPECT_EQ(rule.priority, 3);
  EXPECT_EQ(rule.replicated[0].name, "a");
  EXPECT_TRUE(rule.uneven);
  EXPECT_EQ(parsed.plan.rules[1].target, PlanRule::Target::Result);
}

TEST(Plan, ATildeIsNoQuestionMark) {
  EXPECT_EQ(Parsed("mesh: {a: 2}\nshard: [{tensor: x, dims: [~]}]").error,
            "p.yaml:2:28: error: expected an axis, '_' or '?', got '~'; a dim that is not sharded is '_'\n");
}

// Digits of one axis: (1)2 ends where (2)2 begins, whichever comes first; (1)4 goes on into it.
TEST(Plan, SubAxesThatOnlyTouchAreTwo) {
  auto error = [](StringRef dims) {
    return Parsed(("mesh: {a: 8}\nshard: [{tensor: x, dims: " + dims + "}]").str()).error;
  };
  EXPECT_EQ(error("[\"a:(1)2\", \"a:(2)2\"]"), "");
  EXPECT_EQ(error("[\"a:(4)2\", [\"a:(2)2\", \"a:(1)2\"]]"), "");
  EXPECT_EQ(StringRef(error("[\"a:(1)4\", \"a:(2)2\"]")).split('\n').first,
            "p.yaml:2:38: error: axis 'a:(2)2' is used twice in one tensor");
  EXPECT_EQ(StringRef(error("[\"a:(2)2\", a]")).split('\n').first,
            "p.yaml:2:38: error: axis 'a' is used twice in one tensor");
}

// One style for all axes, or a list with one for each; both are written as they were read.
TEST(Plan, ReadsStyles) {
  Parsed one("mesh: {a: 4}\nlike: megatron"), each("mesh: {a: 2, b: 2}\nlike: [data, megatron]");
  EXPECT_EQ(one.plan.like, std::vector<Style>{Style::Megatron});
  EXPECT_EQ(each.plan.like, (std::vector<Style>{Style::Data, Style::Megatron}));
  EXPECT_EQ(formatPlan(one.plan, AttentionMethod::Auto, ""), "{mesh: {\"a\": 4}, like: megatron}");
  EXPECT_EQ(formatPlan(each.plan, AttentionMethod::Auto, ""), "{mesh: {\"a\": 2, \"b\": 2}, like: [data, megatron]}");
  EXPECT_EQ(StringRef(Parsed("like: [data, spacial]").error).split(';').first,
            "p.yaml:1:14: error: 'spacial' is not a style");
}

TEST(Plan, CountsPerBlock) {
  Parsed plan("mesh: {a: 4}\nexpect: {all_reduce: 2 per block, permute: <= 1 per block, all_gather: 3}");
  ASSERT_EQ(plan.plan.bounds.size(), 3u) << plan.error;
  EXPECT_TRUE(plan.plan.bounds[0].isPerBlock && !plan.plan.bounds[0].isMost && plan.plan.bounds[0].number == 2);
  EXPECT_TRUE(plan.plan.bounds[1].isPerBlock && plan.plan.bounds[1].isMost && plan.plan.bounds[1].number == 1);
  EXPECT_FALSE(plan.plan.bounds[2].isPerBlock);
}

TEST(Plan, NamesThePlaceOfEveryError) {
  EXPECT_EQ(Parsed("").error, "p.yaml:1:1: error: the plan is empty\n");
  EXPECT_EQ(Parsed("[1]").error,
            "p.yaml:1:1: error: expected a mapping with mesh, devices, dims, shard, like, free, uneven, attention, "
            "state, pipeline, train, expect or cluster\n");
  EXPECT_EQ(Parsed("attention: rings").error, "p.yaml:1:12: error: attention is auto, gather or ring, got 'rings'\n");
  EXPECT_EQ(Parsed("mesh: {a: 2}\nmesh: {b: 2}").error, "p.yaml:2:1: error: key 'mesh' is given twice\n");
  EXPECT_EQ(Parsed("mesh: {a: x}").error, "p.yaml:1:11: error: expected a number from 1 to 2147483647, got 'x'\n");
  EXPECT_EQ(Parsed("mesh: {a: 2}\n---\nmesh: {b: 2}").error, "p.yaml:3:1: error: a plan is one document\n");
  EXPECT_EQ(Parsed("shard: [{dims: [_]}]").error, "p.yaml:1:9: error: a rule needs a tensor, a node or a module\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x}]").error, "p.yaml:1:9: error: a rule needs dims\n");
  EXPECT_EQ(Parsed("shard: [{node: x, dims: [_]}]").error,
            "p.yaml:1:9: error: a rule for a node needs an operand or a result\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, operand: 0, dims: [_]}]").error,
            "p.yaml:1:9: error: only a rule for a node has an operand or a result\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, node: y}]").error,
            "p.yaml:1:27: error: a rule has one of tensor, node and module\n");
  EXPECT_EQ(Parsed("shard: [{node: x, operand: 0, result: 0}]").error,
            "p.yaml:1:39: error: a rule has an operand or a result, not both\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, dims: [[?, a]]}]").error,
            "p.yaml:1:32: error: '?' must be the last entry of a dim\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, dims: [[a, _]]}]").error,
            "p.yaml:1:32: error: '_' is written alone, not in a list of axes\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, dims: [\"a:2\"]}]").error,
            "p.yaml:1:28: error: expected a sub-axis such as model:(1)2, got 'a:2'\n");
  EXPECT_EQ(Parsed("mesh: {a: 65536, b: 65536}").error, "p.yaml:1:18: error: the mesh has more than 2^22 ranks\n");
  EXPECT_EQ(Parsed("mesh: {a: 2}\ndevices: [0]").error,
            "p.yaml:2:10: error: the mesh has 2 ranks but devices lists 1\np.yaml:1:8: note: the mesh is here\n");
}

TEST(Plan, SaysWhereACommaIsMissing) {
  EXPECT_EQ(Parsed("mesh: {a: 2 b: 2}").error, "p.yaml:1:12: error: not valid YAML: expected ',' or '}' after '2'\n");
  EXPECT_EQ(Parsed("mesh: {a: 2\nshard: []\n").error,
            "p.yaml:1:12: error: not valid YAML: expected ',' or '}' after '2'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x dims: [a]}]").error,
            "p.yaml:1:19: error: not valid YAML: expected ',' or '}' after 'x'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: my x dims: [a]}]").error,
            "p.yaml:1:22: error: not valid YAML: expected ',' or '}' after 'x'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: \"x\" dims: [a]}]").error,
            "p.yaml:1:21: error: not valid YAML: expected ',' or '}' after '\"x\"'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, dims: [a] priority: 1}]").error,
            "p.yaml:1:30: error: not valid YAML: expected ',' or '}' after ']'\n");
  EXPECT_EQ(Parsed("shard:\n  - {tensor: x, dims: [a]\n  - {tensor: y, dims: [a]}").error,
            "p.yaml:2:26: error: not valid YAML: expected ',' or '}' after ']'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, dims: [[a] _]}]").error,
            "p.yaml:1:31: error: not valid YAML: expected ',' or ']' after ']'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, dims: [a _]}]").error, "p.yaml:1:29: error: expected ',' after 'a'\n");
  EXPECT_EQ(Parsed("mesh: {a: 2}\ndevices: [0 1]").error, "p.yaml:2:12: error: expected ',' after '0'\n");
  // A name may hold blanks, a comment and a quoted text anything.
  EXPECT_EQ(Parsed("mesh: {a: 2} # {\nshard: [{tensor: my x, dims: [\"a\"]}, # ]\n {node: '[{', result: 0, dims: [_]}]")
                .error,
            "p.yaml:3:9: error: bad pattern '[{': invalid glob pattern, unmatched '['\n");
  EXPECT_EQ(Parsed("mesh: {a: 2}\nshard:\n  - tensor: x[0] y\n    dims: [a]\n").error, "");
}

TEST(Plan, SaysWhatElseIsMissing) {
  EXPECT_EQ(Parsed("mesh: {a: 2").error, "p.yaml:1:7: error: not valid YAML: this '{' is never closed\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, dims: [a}]").error,
            "p.yaml:1:29: error: not valid YAML: expected ']', got '}'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x, dims [a]}]").error,
            "p.yaml:1:25: error: not valid YAML: expected ':' after 'dims'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: x[0], dims: [a]}]").error,
            "p.yaml:1:19: error: not valid YAML: expected ',' or '}' after 'x'; a name with brackets must be quoted\n");
  EXPECT_EQ(Parsed("mesh: {a:2}").error, "p.yaml:1:8: error: expected a name, ': ' and a number, got 'a:2'\n");
  EXPECT_EQ(Parsed("shard: [{tensor: [x, y], dims: [a]}]").error,
            "p.yaml:1:18: error: expected one pattern; one of several names is \"{a,b}\", in quotes\n");
  EXPECT_EQ(Parsed("shard: [{tensor: {x,y}, dims: [a]}]").error,
            "p.yaml:1:18: error: expected one pattern; one of several names is \"{a,b}\", in quotes\n");
  EXPECT_EQ(Parsed("mesh: {a: 2}\nshard: [{tensor: x, dims: [a, None]}]").error,
            "p.yaml:2:31: error: unknown axis 'None', the mesh is a=2; a dim that is not sharded is '_'\n");
  EXPECT_EQ(Parsed("mesh: {a: 2}\nshard: [{tensor: x, dims: [null]}]").error,
            "p.yaml:2:28: error: unknown axis 'null', the mesh is a=2; a dim that is not sharded is '_'\n");
  EXPECT_EQ(Parsed("mesh: {null: 2}\nshard: [{tensor: x, dims: [null]}]").error, "");
}

TEST(Plan, ATabDoesNotIndent) {
  EXPECT_EQ(Parsed("mesh: {a: 2}\nshard:\n\t- {tensor: x, dims: [a]}").error,
            "p.yaml:3:1: error: not valid YAML: a tab indents this line, where only blanks may\n");
  EXPECT_EQ(Parsed("mesh:\n  \ta: 2\n").error,
            "p.yaml:2:3: error: not valid YAML: a tab indents this line, where only blanks may\n");
  EXPECT_EQ(Parsed("mesh:\t{a: 2,\n\tb: 2}\n\t\n\t# done").error, "");
}

TEST(Plan, SurvivesHostileText) {
  std::string brackets(100000, '['), dashes, keys = "a";
  for (int i = 0; i < 50000; ++i)
    dashes += "- ";
  EXPECT_EQ(Parsed(brackets).error, "p.yaml:1:17: error: nested too deep for a plan\n");
  for (StringRef before :
       {"!t ", "&a ", "!t", "&a", "a: &a ", "- !t ", "\"a\": ", "? ", "--- ", "*a : ", ", ", "a:", "| "})
    EXPECT_NE(Parsed(before.str() + brackets).error, "") << before.str();
  EXPECT_NE(Parsed(dashes).error.find("nested too deep"), std::string::npos);
  for (int i = 0; i < 100000; ++i)
    keys += i % 2 ? "? \"" : ": [";
  EXPECT_NE(Parsed(keys).error, "");
  EXPECT_NE(Parsed("shard: [{tensor: \"re:(a{255}){255}\", dims: []}]").error.find("invalid repetition size"),
            std::string::npos);
  EXPECT_NE(Parsed(StringRef("\0\1\2", 3)).error, "");
}

TEST(Plan, AMeshOptionReplacesTheMesh) {
  Plan plan = Parsed("mesh: {x: 2}").plan;
  PlanError error;
  ASSERT_TRUE(succeeded(parseMeshOption("data=2,model=4", plan, error)));
  ASSERT_EQ(plan.mesh.size(), 2u);
  EXPECT_EQ(plan.mesh[1].name, "model");
  EXPECT_EQ(plan.mesh[1].size, 4);
  ASSERT_TRUE(failed(parseMeshOption("data=2,model=none", plan, error)));
  EXPECT_EQ(error.format(), "--mesh:1:14: error: expected a size of at least 1, got 'none'\n");
}

TEST(Plan, AShardOptionIsARule) {
  Plan plan;
  PlanError error;
  ASSERT_TRUE(succeeded(parseShardOption("x=y=[data, _]", plan, error)));
  EXPECT_EQ(plan.rules[0].pattern, "x=y");
  EXPECT_EQ(plan.rules[0].dimsPlace.column, 5u);
  ASSERT_TRUE(succeeded(parseShardOption("node:*/query/MatMul#1=[_, model]", plan, error)));
  EXPECT_EQ(plan.rules[1].target, PlanRule::Target::Operand);
  EXPECT_EQ(plan.rules[1].index, 1u);
  ASSERT_TRUE(succeeded(parseShardOption("node:a#b#r2=[?]", plan, error)));
  EXPECT_EQ(plan.rules[2].target, PlanRule::Target::Result);
  EXPECT_EQ(plan.rules[2].pattern, "a#b");
  EXPECT_TRUE(failed(parseShardOption("x", plan, error)));
  EXPECT_EQ(error.format(), "--shard:1:1: error: expected PATTERN=[data, _], got 'x'\n");
}

TEST(Plan, ChecksARuleAgainstAShape) {
  Parsed parsed("mesh: {a: 2, b: 3}\nshard: [{tensor: x, dims: [[a, b], _]}]");
  ASSERT_EQ(parsed.error, "");
  PlanError error;
  const PlanRule &rule = parsed.plan.rules[0];
  EXPECT_TRUE(succeeded(checkRule(parsed.plan, rule, "'x'", {12, 5}, error)));
  EXPECT_TRUE(failed(checkRule(parsed.plan, rule, "'x'", {8, 5}, error)));
  EXPECT_EQ(error.format(),
            "p.yaml:2:28: error: 'x' has size 8 in dim 0, which axis \"a\"=2 times \"b\"=3 does not divide\n"
            "p.yaml:2:28: note: 'uneven: true' would pad it to 12\n");
  EXPECT_TRUE(failed(checkRule(parsed.plan, rule, "'x'", {12}, error)));
  EXPECT_EQ(error.format(), "p.yaml:2:27: error: 'x' has 1 dims but the rule lists 2\n");
}

/// The pairs of a state's option, `input>output` each, or what is wrong with it.
std::string pair(StringRef option, llvm::ArrayRef<StringRef> inputs, llvm::ArrayRef<StringRef> outputs) {
  Plan plan;
  PlanError error;
  std::vector<StatePair> pairs;
  if (failed(parseStateOption(option, plan, error)) || failed(pairStates(plan, inputs, outputs, pairs, error)))
    return error.format();
  std::string text;
  for (const StatePair &pair : pairs)
    text += (inputs[pair.input] + ">" + outputs[pair.output] + " ").str();
  return text;
}

TEST(Plan, StatesGoByWhatStarsStandFor) {
  EXPECT_EQ(pair("past=present", {"x", "past"}, {"y", "present"}), "past>present ");
  EXPECT_EQ(pair("past.*=present.*", {"past.0", "x", "past.1"}, {"present.1", "y", "present.0"}),
            "past.0>present.0 past.1>present.1 ");
  // A star takes as little as it can; pieces in front and behind stay, and may not overlap.
  EXPECT_EQ(pair("a*b*c=*-*", {"axbybzc"}, {"x-ybz"}), "axbybzc>x-ybz ");
  EXPECT_EQ(pair("p*p=q*q", {"p", "pp"}, {"qq"}), "pp>qq ");
  EXPECT_EQ(pair("*a=*", {"", "ba"}, {"b"}), "ba>b ");
  // No characters but stars mean anything.
  EXPECT_EQ(pair("k?[0]=v", {"k?[0]"}, {"v"}), "k?[0]>v ");
  EXPECT_EQ(pair("=y", {"x"}, {"y"}),
            "--state:1:1: error: a state is an input and an output, such as past_*=present_*\n");
  EXPECT_EQ(pair("a*=b", {"ax"}, {"b"}), "--state:1:1: error: 'a*' and 'b' have not as many stars\n");
  EXPECT_EQ(pair("k*=v*", {"k1"}, {"v1", "v2"}),
            "--state:1:1: error: output 'v2' is a state, but there is no input 'k2'; did you mean 'k1'?\n");
  EXPECT_EQ(pair("*=y", {"a", "b"}, {"y"}), "--state:1:1: error: '*' and 'y' have not as many stars\n");
}

/// The states that are proposed where any output could be the next value of any input but `x`.
std::string propose(llvm::ArrayRef<StringRef> inputs, llvm::ArrayRef<StringRef> outputs) {
  std::string text;
  for (const PlanState &state :
       proposeStates(inputs, outputs, [&](size_t input, size_t) { return inputs[input] != "x"; }))
    text += state.input.text + "=" + state.output.text + " ";
  return text;
}

TEST(Plan, ProposesStatesByNames) {
  EXPECT_EQ(propose({"x", "past_key_values.0.key", "past_key_values.0.value"},
                    {"logits", "present.0.key", "present.0.value"}),
            "past_key_values*=present* ");
  EXPECT_EQ(propose({"past_0_key", "past_1_key"}, {"present_1_key", "present_0_key"}), "past*=present* ");
  EXPECT_EQ(propose({"cache_k_0", "cache_v_0"}, {"new_cache_k_0", "new_cache_v_0"}), "cache*=new_cache* ");
  // An output without an input, an input without an output, and names that say nothing of a past.
  EXPECT_EQ(propose({"past.0.key"}, {"present.0.key", "present.1.key"}), "");
  EXPECT_EQ(propose({"past.0.key", "past.1.key"}, {"present.0.key"}), "");
  EXPECT_EQ(propose({"left.0"}, {"right.0"}), "");
  EXPECT_EQ(propose({"past.0"}, {"logits"}), "");
}

// What does not fit is no state, whatever it is called.
TEST(Plan, ProposesStatesOfOneTypeOnly) {
  auto never = [](size_t, size_t) { return false; };
  EXPECT_TRUE(proposeStates({"past.0"}, {"present.0"}, never).empty());
}

TEST(Plan, ReadsStatesOfAFile) {
  Parsed parsed("state: {\"past_*\": \"present_*\", h: h_next}");
  ASSERT_EQ(parsed.error, "");
  ASSERT_EQ(parsed.plan.states.size(), 2u);
  EXPECT_EQ(parsed.plan.states[1].output.text, "h_next");
  EXPECT_EQ(parsed.plan.states[1].output.place.column, 35u);
  EXPECT_EQ(Parsed("state: {\"past_*\": present}").error,
            "p.yaml:1:9: error: 'past_*' and 'present' have not as many stars\n");
}

TEST(NamePattern, MatchesWholeNames) {
  auto matches = [&](StringRef text, StringRef name) {
    return llvm::cantFail(NamePattern::create(text)).matches(name);
  };
  EXPECT_TRUE(matches("enc.*.bias", "enc.0.ffn.bias"));
  EXPECT_FALSE(matches("enc.*.bias", "enc.0.ffn.bias2"));
  EXPECT_TRUE(matches("*/{query,key}/MatMul", "/l.0/key/MatMul"));
  EXPECT_FALSE(matches("*/{query,key}/MatMul", "/l.0/value/MatMul"));
  EXPECT_TRUE(matches("w[ab]?", "wax"));
  EXPECT_TRUE(matches("re:w[0-9]+", "w12"));
  EXPECT_FALSE(matches("re:w[0-9]+", "w12x"));
  EXPECT_TRUE(matches("odd\\[name", "odd[name"));
  EXPECT_TRUE(matches("*/{query}/MatMul", "/l.0/query/MatMul"));
  EXPECT_TRUE(matches("{a,{b}}", "b"));
  EXPECT_TRUE(matches("kv{1}", "kv{1}"));
  // An escaped brace is a letter; one in a set is, too, and ends no group.
  EXPECT_TRUE(matches("kv\\{1}", "kv{1}"));
  EXPECT_FALSE(matches("kv\\{1}", "kv1"));
  EXPECT_TRUE(matches("{[}]a,b}", "}a"));
  EXPECT_TRUE(matches("{[}]a,b}", "b"));
  EXPECT_FALSE(matches("{[}]a,b}", "a"));
}

// Messages say "there is no tensor" of a name, "no tensor matches" of a pattern.
TEST(NamePattern, TellsNamesFromPatterns) {
  auto isLiteral = [&](StringRef text) { return llvm::cantFail(NamePattern::create(text)).isLiteral(); };
  EXPECT_TRUE(isLiteral("/enc.0/MatMul_output_0"));
  for (StringRef text : {"w*", "w?", "w[ab]", "{a,b}", "odd\\[name", "re:w"})
    EXPECT_FALSE(isLiteral(text)) << text.str();
}

TEST(NamePattern, RefusesWhatIsNoPattern) {
  auto getError = [](StringRef text) { return llvm::toString(NamePattern::create(text).takeError()); };
  EXPECT_TRUE(StringRef(getError("odd[name")).starts_with("bad pattern 'odd[name': ")) << getError("odd[name");
  EXPECT_NE(getError("a{}"), "");
  EXPECT_NE(getError("a{b"), "");
  EXPECT_TRUE(StringRef(getError("re:(")).starts_with("bad regular expression '(': ")) << getError("re:(");
  EXPECT_EQ(getError(""), "pattern is empty");
}

TEST(NamePattern, SuggestsWhatIsNear) {
  llvm::SmallVector<StringRef> names{"/enc/query/MatMul", "/enc/key/MatMul", "input_ids", "attention_mask"};
  EXPECT_EQ(findNearestNames("input_idx", names), std::vector<std::string>{"input_ids"});
  EXPECT_EQ(findNearestNames("*/qeury/MatMul", names).front(), "/enc/query/MatMul");
  EXPECT_EQ(findNearestNames("*xz", {"/enc/xy"}), std::vector<std::string>{"/enc/xy"}); // What `*` takes is free.
  EXPECT_EQ(suggestNames("zzzzzzzzz", names), "");
  EXPECT_EQ(suggestNames("input_id", names), "; did you mean 'input_ids'?");
}

} // namespace
