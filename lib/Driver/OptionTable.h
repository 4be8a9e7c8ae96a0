//===- OptionTable.h - commands and options as data -------------*- C++ -*-===//
//
// What Options.td says, at run time, and how help, completion and the man page look at it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DRIVER_OPTIONTABLE_H
#define CLEAVE_LIB_DRIVER_OPTIONTABLE_H

#include "cleave/Driver/Options.h"
#include "llvm/Option/OptTable.h"
#include "llvm/Option/Option.h"
#include "llvm/Support/raw_ostream.h"

namespace cleave::driver {

/// Of an option: for which inputs it is (Options.td).
enum OptionFlag : unsigned {
  OfBenchedProgram = 1 << 4,
  OfInspectedProgram = 1 << 5,
  UntilPropagated = 1 << 6,
  UntilOptimized = 1 << 7,
  OfOnnxModel = 1 << 8,
};

/// `OPT_mesh`: one for each record of Options.td, groups included.
enum OptionId : unsigned {
  OPT_INVALID = 0,
#define OPTION(...) LLVM_MAKE_OPT_ID(__VA_ARGS__),
#include "Options.inc"
#undef OPTION
};

const llvm::opt::OptTable &getOptionTable();

/// The command of that name, or null.
const llvm::opt::OptTable::SubCommand *findCommand(llvm::StringRef name);

struct OptionGroup {
  llvm::StringRef title;
  std::vector<llvm::opt::Option> options; ///< without their aliases
};
/// The options of `command`, of all commands where it is empty; no group is empty.
std::vector<OptionGroup> getOptionGroups(llvm::StringRef command);

/// The options of `command` that `flag` marks, as they are written, with commas.
std::string listMarked(llvm::StringRef command, OptionFlag flag);

/// `--mesh data=2,model=4`.
std::string formatUsage(const llvm::opt::Option &option);
/// What it does; the words that it takes.
std::string formatHelp(const llvm::opt::Option &option);

/// The words that the argument of an option may be, where it is one of a few.
std::vector<llvm::StringRef> getWords(const llvm::opt::Option &option);

/// Fills the member of `options` that an option is about. What is wrong with the argument; empty: nothing.
std::string readArgument(Options &options, const llvm::opt::Option &option, llvm::StringRef argument);
/// Whether an option says all of its member, so that a second one would take back what the first says.
bool saysAllOfIt(const llvm::opt::Option &option);

/// Prints what words ask for that are no command: the exit code; nothing where they ask for none of that.
std::optional<int> runPrinting(llvm::ArrayRef<llvm::StringRef> words);
/// What is wrong with words that no command begins.
std::string explainNoCommand(llvm::ArrayRef<llvm::StringRef> words);

/// All commands, for `cleave --help`.
void printUsage(llvm::raw_ostream &os);
void printHelp(llvm::raw_ostream &os, const llvm::opt::OptTable::SubCommand &command);
/// The man page, for `man`.
void printManual(llvm::raw_ostream &os);

/// The shells that there is a completion script for.
llvm::ArrayRef<llvm::StringRef> getShells();
/// The script that makes `shell` ask this program. Precondition: one of `getShells()`.
void printCompletionScript(llvm::raw_ostream &os, llvm::StringRef shell);
/// What can stand for the last of the words behind `cleave`, one a line; nothing where a file may. For `--emit=an` what
/// can stand behind the `=`.
void printCompletions(llvm::raw_ostream &os, llvm::ArrayRef<llvm::StringRef> words);

} // namespace cleave::driver

#endif // CLEAVE_LIB_DRIVER_OPTIONTABLE_H
