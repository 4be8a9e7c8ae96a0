//===- ExecAll.td - every op of the exec dialect, for its page --*- tablegen -*-===//
#ifndef CLEAVE_EXEC_ALL
#define CLEAVE_EXEC_ALL

include "ExecOps.td"
include "ExecControl.td"

#endif // CLEAVE_EXEC_ALL
