// What is no width.
//
// RUN: cleave-opt %s --exec-pack-weights=width=0 --verify-diagnostics

// expected-error @below {{panels of width 0 hold nothing}}
module {
}
