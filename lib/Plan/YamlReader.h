//===- YamlReader.h - reading nodes of a plan file --------------*- C++ -*-===//
//
// One function per kind of node. The first error stays, with its place: later ones usually follow from it. Nodes are
// read once, in the order in which they stand.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_PLAN_YAMLREADER_H
#define CLEAVE_LIB_PLAN_YAMLREADER_H

#include "PlanScan.h"
#include "cleave/Plan/Plan.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

namespace cleave::spmd {

class YamlReader {
public:
  using KeyHandler = llvm::function_ref<llvm::LogicalResult(llvm::StringRef key, llvm::yaml::KeyValueNode &entry)>;

  /// Text and error live longer than the reader. `what` the text is, for people.
  YamlReader(llvm::StringRef text, llvm::StringRef file, PlanError &error, llvm::StringRef what = "plan");

  PlanPlace placeOf(const llvm::yaml::Node *node) const;
  PlanPlace placeOf(llvm::SMLoc loc) const;
  llvm::LogicalResult fail(const llvm::yaml::Node *node, const llvm::Twine &message);
  /// What is wrong in another file.
  llvm::LogicalResult failWith(PlanError other);
  /// The reader's own error if the parser had one, else `message`.
  llvm::LogicalResult failExpecting(const llvm::yaml::Node *node, const llvm::Twine &expected);
  /// `message`, of a text that is no single word; where blanks part it, rather that a comma is missing there.
  llvm::LogicalResult failWord(llvm::yaml::Node *node, const llvm::Twine &message);
  /// The root of the only document; null after an error.
  llvm::yaml::Node *open();
  /// Fails where something stands behind the document.
  llvm::LogicalResult close();

  llvm::LogicalResult readText(llvm::yaml::Node *node, std::string &text);
  llvm::LogicalResult readInteger(llvm::yaml::Node *node, int64_t &value, int64_t least, int64_t most);
  /// A pattern of names, which must be one.
  llvm::LogicalResult readPattern(llvm::yaml::Node *node, PlanPattern &pattern);
  /// With a unit, since plans are read by people; at least 1.
  llvm::LogicalResult readBytes(llvm::yaml::Node *node, int64_t &bytes);
  llvm::LogicalResult readFlag(llvm::yaml::Node *node, bool &value);
  /// Calls `handler` for every entry of a mapping; keys are distinct and, unless `known` is empty, among `known`.
  llvm::LogicalResult readMapping(llvm::yaml::Node *node, llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known,
                                  KeyHandler handler, llvm::StringRef value = "a number");
  llvm::LogicalResult readSequence(llvm::yaml::Node *node, llvm::StringRef what,
                                   llvm::function_ref<llvm::LogicalResult(llvm::yaml::Node *)> handler);

private:
  llvm::StringRef original;
  std::string file, scanned, what;
  std::vector<size_t> lineStarts = {0};
  std::optional<PlanProblem> problem;
  PlanError &error;
  bool hasError = false;
  llvm::SourceMgr sources;
  std::unique_ptr<llvm::yaml::Stream> stream;
  llvm::yaml::document_iterator document;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_YAMLREADER_H
