//===- Page.cpp - a decision as one HTML file -----------------------------===//
//
// The frame of the file has a place for each part:
//
//   page.html   <style> {{STYLE}} </style>   {{NOTE}}   <script json> {{MODEL}} </script>   <script> {{SCRIPT}} </script>
//
//===----------------------------------------------------------------------===//
#include "cleave/Pictures/Page.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cassert>

using namespace cleave;
using llvm::StringRef;

#include "PageParts.inc"

llvm::json::Object cleave::pictures::makePage(StringRef model, llvm::json::Array plans,
                                              llvm::ArrayRef<std::string> differences) {
  assert(!plans.empty() && "a page shows a plan");
  return llvm::json::Object{{"version", 3},
                            {"kind", "page"},
                            {"model", model.str()},
                            {"plans", std::move(plans)},
                            {"differences", llvm::json::Array(differences)}};
}

/// As JSON inside of a script: no letters end that, or begin a comment of HTML.
static std::string formatModel(llvm::json::Object page) {
  std::string text = llvm::formatv("{0}", llvm::json::Value(std::move(page))), safe;
  for (char c : text)
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  return safe;
}

void cleave::pictures::writePage(llvm::raw_ostream &os, llvm::json::Object page, StringRef note) {
  std::string safe;
  llvm::raw_string_ostream safely(safe);
  llvm::printHTMLEscaped(note, safely);
  StringRef rest = kPageFrame;
  // In the order of the file.
  auto put = [&](StringRef mark, StringRef text) {
    auto [before, after] = rest.split(mark);
    os << before << text;
    rest = after;
  };
  put("{{STYLE}}", kPageStyle);
  put("{{NOTE}}", safe);
  put("{{MODEL}}", formatModel(std::move(page)));
  put("{{SCRIPT}}", kPageScript);
  os << rest;
}
