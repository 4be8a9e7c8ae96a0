//===- NamedTensors.cpp - what a plan names and folding would lose --------===//
#include "NamedTensors.h"

#include "cleave/Plan/NamePattern.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

NamedTensors::NamedTensors(ArrayRef<spmd::PlanRule> rules, const GraphProto &graph) {
  std::string error;
  for (const spmd::PlanRule &rule : rules) {
    if (rule.target != spmd::PlanRule::Target::Tensor)
      addNodes(rule, graph);
    else if (auto pattern = spmd::NamePattern::create(rule.pattern, error); pattern && pattern->isLiteral())
      entries.push_back({rule.formatTarget(), false, {names.insert(rule.pattern).first->getKey()}});
  }
}

void NamedTensors::addNodes(const spmd::PlanRule &rule, const GraphProto &graph) {
  std::string error;
  auto pattern = spmd::NamePattern::create(rule.pattern, error);
  if (!pattern)
    return;
  Entry entry{rule.formatTarget(), true, {}};
  for (const NodeProto &node : graph.node) {
    ArrayRef<StringRef> list = rule.target == spmd::PlanRule::Target::Operand ? node.input : node.output;
    if (rule.index < list.size() && !list[rule.index].empty() && pattern->matches(node.name))
      entry.names.push_back(names.insert(list[rule.index]).first->getKey());
  }
  if (!entry.names.empty())
    entries.push_back(std::move(entry));
}

void NamedTensors::forEach(function_ref<void(StringRef)> callback) const {
  for (const Entry &entry : entries)
    llvm::for_each(entry.names, callback);
}

DictionaryAttr NamedTensors::getNamed(MLIRContext *context) const {
  Builder builder(context);
  NamedAttrList rules;
  for (const Entry &entry : entries)
    if (entry.isNode || llvm::any_of(entry.names, [&](StringRef name) { return unused.contains(name); }))
      rules.set(entry.rule, builder.getStrArrayAttr(entry.names));
  return rules.empty() ? DictionaryAttr() : rules.getDictionary(context);
}
