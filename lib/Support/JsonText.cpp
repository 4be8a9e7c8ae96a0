//===- JsonText.cpp - JSON that somebody else has written -----------------===//
//
// Levels are counted before anything is parsed; brackets in strings are none.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/JsonText.h"

#include "cleave/Support/Status.h"

using namespace cleave;

static constexpr size_t kMostDepth = 32;

void cleave::forEachOutsideStrings(llvm::StringRef text, llvm::function_ref<void(char)> body) {
  bool isString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isString && c == '\\')
      ++i;
    else if (c == '"')
      isString = !isString;
    if (!isString)
      body(c);
  }
}

static size_t findDepth(llvm::StringRef text) {
  size_t depth = 0, deepest = 0;
  forEachOutsideStrings(text, [&](char c) {
    depth += c == '[' || c == '{';
    depth -= depth && (c == ']' || c == '}');
    deepest = std::max(deepest, depth);
  });
  return deepest;
}

llvm::Expected<llvm::json::Value> cleave::parseJson(llvm::StringRef text) {
  if (findDepth(text) > kMostDepth)
    return makeError("it nests deeper than {0} levels", kMostDepth);
  return llvm::json::parse(text);
}
