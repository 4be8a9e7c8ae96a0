//===- Lsp.cpp - `cleave lsp` ---------------------------------------------===//
//
// The server has a compilation for each look at a plan; that of the session is not used.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Session.h"
#include "cleave/Editor/Server.h"

using namespace cleave;
using namespace cleave::driver;

ExitCode cleave::driver::lspCommand(Session &session) {
  return editor::servePlans(session.getOptions().compile) == 0 ? kDone : kBadInput;
}
