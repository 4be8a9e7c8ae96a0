//===- Lsp.cpp - `cleave lsp` ---------------------------------------------===//
//
// Standard output is the editor's: nothing of the session is printed there. The server has a compilation for each look at a plan; that of the
// session, which would take one model one way, is not used.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Session.h"
#include "cleave/Editor/Server.h"

using namespace cleave;
using namespace cleave::driver;

ExitCode cleave::driver::lspCommand(Session &session) {
  return editor::servePlans(session.getOptions().compile) == 0 ? kDone : kBadInput;
}
