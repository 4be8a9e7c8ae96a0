//===- ToolFiles.cpp - what a tool's command line reads, writes -----------===//
//
// MLIR's tools parse their options inside, and only some say afterwards what they found. So words are read as LLVM reads them: `-name=value`
// or `-name value`, with one dash or two.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/ToolFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace cleave;
using llvm::StringRef;

static constexpr llvm::StringLiteral kOutputs[] = {"o",
                                                   "mlir-generate-reproducer",
                                                   "mlir-pass-pipeline-crash-reproducer",
                                                   "remarks-output-file",
                                                   "log-actions-to",
                                                   "profile-actions-to"};

/// Files that a word names: as a whole, as an option's value, or in the options of a pass (`--spmd-annotate="plan=p.yaml"`).
static void addNamedFiles(StringRef word, runtime::CommandFiles &files) {
  auto add = [&](StringRef path) {
    if (llvm::sys::fs::is_regular_file(path))
      files.addInput("what this command reads", path.str());
  };
  add(word);
  for (StringRef rest = word; !rest.empty();) {
    auto [name, others] = rest.split('=');
    add(others);
    rest = others;
    add(others.take_until([](char c) { return StringRef(" {}(),'\"").contains(c); }));
  }
}

runtime::CommandFiles cleave::listToolFiles(llvm::ArrayRef<const char *> words) {
  runtime::CommandFiles files;
  for (size_t i = 0; i < words.size(); ++i) {
    StringRef word = words[i];
    auto [name, value] = word.split('=');
    if (!word.starts_with("-") || !llvm::is_contained(kOutputs, name.ltrim('-'))) {
      addNamedFiles(word, files);
      continue;
    }
    bool isApart = name == word && i + 1 < words.size();
    files.addOutput(name.str(), isApart ? words[++i] : value.str());
  }
  return files;
}

bool cleave::checkToolFiles(StringRef tool, const runtime::CommandFiles &files) {
  program::Status error = files.check();
  if (error)
    llvm::errs() << tool << ": error: " << error->message << '\n';
  return !error;
}
