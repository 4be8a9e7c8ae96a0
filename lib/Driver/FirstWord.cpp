//===- FirstWord.cpp - what the first word of a command line asks for -----===//
//
// A command, or something to be printed. What is neither is told apart by what people try: options in front, files, other spellings.
//
//===----------------------------------------------------------------------===//
#include "OptionTable.h"

#include "cleave/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;
using llvm::ArrayRef;
using llvm::StringRef;

/// `cleave completion SHELL` prints a script, `cleave completion SHELL WORD..` what that script asks for.
static int runCompletion(ArrayRef<StringRef> words) {
  if (words.empty() || !llvm::is_contained(getShells(), words.front())) {
    llvm::errs() << "cleave: error: 'cleave completion' needs a shell: " << llvm::join(getShells(), " or ") << '\n';
    return kBadCommandLine;
  }
  if (words.size() == 1)
    printCompletionScript(llvm::outs(), words.front());
  else
    printCompletions(llvm::outs(), words.drop_front());
  return kDone;
}

/// What only prints: the exit code where `words` ask for that.
std::optional<int> cleave::driver::runPrinting(ArrayRef<StringRef> words) {
  auto isHelp = [](StringRef word) { return word == "--help" || word == "-h"; };
  if (words.empty()) {
    printUsage(llvm::errs());
    return kBadCommandLine;
  }
  StringRef first = words.front();
  bool asksHelp = isHelp(first) || first == "help";
  if (asksHelp && words.size() == 2 && findCommand(words.back()))
    printHelp(llvm::outs(), *findCommand(words.back()));
  else if (asksHelp && words.size() == 1)
    printUsage(llvm::outs());
  else if (asksHelp)
    return std::nullopt;
  else if (first == "--version" || first == "-v" || first == "-V")
    llvm::outs() << "cleave " CLEAVE_VERSION " (LLVM " CLEAVE_LLVM_VERSION ")\n";
  else if (first == "completion" && !(words.size() == 2 && isHelp(words.back())))
    return runCompletion(words.drop_front());
  else if (findCommand(first) && llvm::any_of(words, isHelp))
    printHelp(llvm::outs(), *findCommand(first));
  else if (first == "manual" && words.size() == 1)
    printManual(llvm::outs());
  else
    return std::nullopt;
  return kDone;
}

/// What is wrong with words that no command begins.
std::string cleave::driver::explainNoCommand(ArrayRef<StringRef> words) {
  StringRef first = words.front();
  bool isHelp = first == "help" || first == "--help" || first == "-h";
  if (first == "manual" || (isHelp && findCommand(words[1])))
    return llvm::formatv("unexpected argument '{0}'", first == "manual" ? words[1] : words[2]);
  StringRef wanted = isHelp ? words[1] : first;
  std::vector<StringRef> names;
  for (const auto &known : getOptionTable().getSubCommands())
    names.push_back(known.Name);
  const StringRef *command = llvm::find_if(words, [](StringRef word) { return findCommand(word) != nullptr; });
  if (wanted.starts_with("-"))
    return command == words.end()
               ? llvm::formatv("there is no command: one comes first, as in 'cleave run MODEL {0}'", wanted).str()
               : llvm::formatv("option '{0}' is before the command: 'cleave {1}' comes first, and options after it",
                               wanted, *command)
                     .str();
  if (llvm::sys::fs::exists(wanted) && !isHelp)
    return llvm::formatv("'{0}' is a file, and a command comes first, as in 'cleave inspect {0}'", wanted);
  return llvm::formatv("unknown command '{0}'{1}", wanted, suggestNames(wanted, names));
}
