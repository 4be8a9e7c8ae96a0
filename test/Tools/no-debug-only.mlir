// Builds without assertions have no notes of passes, and say that they know no such option.
//
// RUN: not cleave-opt %s --debug-only=spmd-partition 2>&1 | FileCheck %s

// CHECK: Unknown command line argument '--debug-only=spmd-partition'
