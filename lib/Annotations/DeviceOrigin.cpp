//===- DeviceOrigin.cpp - the plan that annotations come of ---------------===//
//
// ONNX's annotations speak of ONNX's tensors. What a node has become has values between that are none of them: parts of a
// split, heads in another order, a gather's place. Decided anew from the annotations, these may come out otherwise where
// forms tie. So a model that Cleave annotates keeps the plan as well, and it counts, and not the annotations, as long as it says the same:
//
//   cleave.plan         {mesh: {"model": 4}, shard: [{tensor: "*.weight", dims: [model, _]}]}
//   cleave.plan.digest  of that text, of what else decides (sizes of inputs, options), and of all annotations
//
// Whoever changes an annotation, a size or an option gets what the annotations say.
//
//===----------------------------------------------------------------------===//
#include "cleave/Annotations/DevicePlan.h"
#include "cleave/Annotations/Properties.h"

#include "cleave/Onnx/WireReader.h"
#include "cleave/Program/Digest.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace cleave;
using namespace cleave::onnx;

static void addText(std::string &all, StringRef text) {
  all += utohexstr(program::hashBytes({text.data(), text.size()}));
}

void PlanDigest::addAnnotation(StringRef bytes) { addText(all, bytes); }

std::string PlanDigest::get(StringRef plan, StringRef settings) const {
  std::string whole = all;
  addText(whole, plan);
  addText(whole, settings);
  std::string digest;
  addText(digest, whole);
  return digest;
}

/// Walks to the field that nodes have annotations in; the file has been read once, so that nothing is wrong with it.
static PlanDigest digestAnnotations(StringRef file) {
  constexpr uint32_t graphOfModel = 7, nodeOfGraph = 1, annotationOfNode = 10;
  WireReader wire(file, ReadLimits());
  PlanDigest digest;
  wire.fields(file, [&](const WireField &graph) {
    return graph.number != graphOfModel || wire.fields(graph.payload, [&](const WireField &node) {
      return node.number != nodeOfGraph || wire.fields(node.payload, [&](const WireField &told) {
        if (told.number == annotationOfNode)
          digest.addAnnotation(told.payload);
        return true;
      });
    });
  });
  return digest;
}

bool cleave::onnx::readOrigin(const ModelFile &file, StringRef settings, spmd::Plan &plan, bool &isOther) {
  StringRef text, told;
  for (const StringStringEntryProto &property : file.model.metadataProps) {
    if (property.key == kPlanProperty)
      text = property.value;
    if (property.key == kPlanDigestProperty)
      told = property.value;
  }
  isOther = !text.empty();
  if (text.empty() || told != digestAnnotations(file.file->getBytes()).get(text, settings))
    return false;
  spmd::Plan origin;
  spmd::PlanError ignored;
  if (failed(parsePlan(text, file.file->getPath(), origin, ignored)) || failed(checkPlan(origin, ignored)))
    return false;
  isOther = false;
  plan.mesh = origin.mesh;
  plan.devices = origin.devices;
  plan.rules = origin.rules;
  plan.uneven = origin.uneven;
  plan.attention = origin.attention;
  plan.pipeline = origin.pipeline;
  return true;
}
