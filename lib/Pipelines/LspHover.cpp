//===- LspHover.cpp - what an editor shows of ops and shardings -----------===//
//
//   editor ──stdin──▶ MLIR's server ──pipe──▶ this filter ──stdout──▶ editor
//
// MLIR's server writes of an op its name and its generic form, of a value its type. The descriptions of ops are those of
// docs/generated, which lint holds to the dialects; they are part of the program.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/LspHover.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace cleave;

#pragma clang diagnostic ignored "-Wc23-extensions"
static const char kNnPage[] = {
#embed "../../docs/generated/nn.md"
    , 0};
static const char kSpmdPage[] = {
#embed "../../docs/generated/spmd.md"
    , 0};

//===----------------------------------------------------------------------===//
// What is added
//===----------------------------------------------------------------------===//

/// What a page says of an op, up to its traits and operands.
static StringRef findDescription(StringRef op) {
  for (StringRef page : {StringRef(kNnPage), StringRef(kSpmdPage)}) {
    StringRef section = page.split("\n### `" + op.str() + "` (").second;
    if (section.empty())
      continue;
    section = section.split('\n').second;
    for (StringRef end : {"\n### ", "\n## ", "\n#### ", "\nTraits:", "\nInterfaces:", "\nEffects:"})
      section = section.split(end).first;
    return section.trim();
  }
  return {};
}

/// Of a hover text with a line "Type: `T`", what to say of the sharding in T; nothing if it has none.
static std::string describeSharding(StringRef text, MLIRContext &context) {
  StringRef typeText = text.split("Type: `").second.split('`').first;
  Type type = typeText.empty() ? Type() : parseType(typeText, &context);
  spmd::ShardingAttr sharding = type ? spmd::getSharding(type) : spmd::ShardingAttr();
  if (!sharding)
    return "";
  std::string result;
  llvm::raw_string_ostream(result) << "Sharding: `" << spmd::formatSharding(sharding) << "`\n\nOn a rank: `"
                                   << spmd::getLocalType(cast<RankedTensorType>(type)) << "`\n\n";
  return result;
}

std::string cleave::describeHover(StringRef message, MLIRContext &context) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(message);
  if (!value)
    return llvm::consumeError(value.takeError()), message.str();
  llvm::json::Object *answer = value->getAsObject(), *result = answer ? answer->getObject("result") : nullptr;
  llvm::json::Object *contents = result ? result->getObject("contents") : nullptr;
  std::optional<StringRef> text = contents ? contents->getString("value") : std::nullopt;
  if (!text)
    return message.str();
  // An op's text begins with its name in quotes.
  StringRef rest = *text, description;
  if (rest.consume_front("\""))
    description = findDescription(rest.split('"').first);
  std::string added = description.empty() ? describeSharding(*text, context) : description.str() + "\n";
  if (added.empty())
    return message.str();
  (*contents)["value"] = text->rtrim().str() + "\n\n" + added;
  return message.contains('\n') ? llvm::formatv("{0:2}", *value).str() : llvm::formatv("{0}", *value).str();
}

//===----------------------------------------------------------------------===//
// The filter
//===----------------------------------------------------------------------===//

/// Writes the whole messages at the front of `data`, changed, and leaves what is not complete. What is no message is written
/// as it is.
static void writeMessages(std::string &data, llvm::function_ref<std::string(StringRef)> change) {
  constexpr StringLiteral header = "Content-Length: ", separator = "\r\n\r\n";
  size_t end, size;
  while ((end = data.find(separator)) != std::string::npos &&
         !StringRef(data).slice(header.size(), end).getAsInteger(10, size) &&
         data.size() >= end + separator.size() + size) {
    std::string message = change(StringRef(data).substr(end + separator.size(), size));
    llvm::outs() << header << message.size() << separator << message;
    data.erase(0, end + separator.size() + size);
  }
  if (!header.starts_with(StringRef(data).take_front(header.size()))) {
    llvm::outs() << data;
    data.clear();
  }
  llvm::outs().flush();
}

int cleave::filterMessages(llvm::function_ref<int()> server, llvm::function_ref<std::string(StringRef)> change) {
  int ends[2];
  pid_t child = ::pipe(ends) == 0 ? ::fork() : -1;
  if (child < 0)
    return server(); // Without the filter hover texts are shorter.
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    int code = server();
    llvm::outs().flush();
    std::exit(code);
  }
  ::close(ends[1]);
  std::string data;
  char buffer[4096];
  for (ssize_t size; (size = ::read(ends[0], buffer, sizeof(buffer))) > 0;) {
    data.append(buffer, size);
    writeMessages(data, change);
  }
  llvm::outs() << data;
  llvm::outs().flush();
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
