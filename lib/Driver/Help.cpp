//===- Help.cpp - usage, help and the man page ----------------------------===//
//
// Three texts of what Options.td says. The man page is written in man(7): a line that starts with a dot is a command.
//
//===----------------------------------------------------------------------===//
#include "OptionTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave::driver;
using llvm::StringRef;
using llvm::opt::Option;
using llvm::opt::OptTable;

static constexpr llvm::StringLiteral kTitle = "splits an ONNX model over a mesh of devices";
static constexpr llvm::StringLiteral kModel =
    "MODEL is an .onnx file or an .mlir file at any phase; '-' is standard input.";

static constexpr std::pair<ExitCode, llvm::StringLiteral> kExitCodes[] = {
    {kDone, "done"},
    {kBadInput, "the model, plan or data is wrong"},
    {kBadCommandLine, "the command line is wrong"},
    {kDifference, "--check found a difference, or the program is not what the plan expects"},
    {kRunFault, "a fault while running"},
    {kInternalError, "a bug of ours (a reproducer file is written and named)"}};

void cleave::driver::printUsage(llvm::raw_ostream &os) {
  os << "cleave: " << kTitle << "\n\n";
  for (const OptTable::SubCommand &command : getOptionTable().getSubCommands())
    os << llvm::formatv("  cleave {0,-10} {1,-28} {2}\n", command.Name, command.Usage, command.HelpText);
  os << '\n'
     << kModel << "\n`cleave COMMAND --help` lists a command's options; `cleave --version` prints the version.\n";
  os << "Exit codes: ";
  llvm::interleave(kExitCodes, os, [&](const auto &entry) { os << int(entry.first) << ' ' << entry.second; }, "; ");
  os << ".\n";
}

void cleave::driver::printHelp(llvm::raw_ostream &os, const OptTable::SubCommand &command) {
  os << llvm::formatv("cleave {0} {1}\n  {2}\n", command.Name, command.Usage, command.HelpText);
  for (const OptionGroup &group : getOptionGroups(command.Name)) {
    os << '\n' << group.title << ":\n";
    for (const Option &option : group.options)
      os << llvm::formatv("  {0,-28} {1}\n", formatUsage(option), formatHelp(option));
  }
  for (auto [name, flag] : {std::pair("bench", OfBenchedProgram), std::pair("inspect", OfInspectedProgram)})
    if (StringRef(command.Name) == name)
      os << "\nWith a PROGRAM: " << listMarked(command.Name, flag) << ".\n";
}

/// `text` as one line of man(7).
static std::string escape(StringRef text) {
  std::string escaped = text.starts_with(".") || text.starts_with("'") ? "\\&" : "";
  for (char c : text)
    escaped += c == '-' ? "\\-" : c == '\\' ? "\\e" : c == '\'' ? "\\(aq" : std::string(1, c);
  return escaped;
}

/// The commands that take an option.
static std::string listCommands(const Option &option) {
  std::vector<StringRef> names;
  for (const OptTable::SubCommand &command : getOptionTable().getSubCommands())
    if (option.isRegisteredSC(command.Name))
      names.push_back(command.Name);
  return llvm::join(names, ", ");
}

void cleave::driver::printManual(llvm::raw_ostream &os) {
  os << ".TH CLEAVE 1 \"\" \"cleave " CLEAVE_VERSION "\"\n.SH NAME\ncleave \\- " << escape(kTitle)
     << "\n.SH SYNOPSIS\n.B cleave\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH DESCRIPTION\n"
     << escape(kModel) << "\n.SH COMMANDS\n";
  for (const OptTable::SubCommand &command : getOptionTable().getSubCommands())
    os << ".TP\n\\fBcleave " << command.Name << "\\fR " << escape(command.Usage) << '\n'
       << escape(command.HelpText) << '\n';
  os << ".SH OPTIONS\n";
  for (const OptionGroup &group : getOptionGroups("")) {
    os << ".SS " << group.title << '\n';
    for (const Option &option : group.options)
      os << ".TP\n\\fB" << escape(option.getPrefixedName()) << "\\fR"
         << escape(StringRef(formatUsage(option)).drop_front(option.getPrefixedName().size())) << '\n'
         << escape(formatHelp(option)) << " (" << listCommands(option) << ")\n";
  }
  os << ".SH EXIT STATUS\n";
  for (const auto &[code, meaning] : kExitCodes)
    os << ".TP\n.B " << int(code) << '\n' << escape(meaning) << '\n';
}
