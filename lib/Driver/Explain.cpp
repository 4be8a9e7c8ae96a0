//===- Explain.cpp - why is it sharded so? --------------------------------===//
#include "cleave/Driver/Session.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

int cleave::driver::explainCommand(Session &session) { return kDone; }
