//===- cleave.cpp - the driver --------------------------------------------===//
//
// All work is in lib/Compiler; what is printed is in lib/Driver.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Main.h"

int main(int argc, char **argv) { return cleave::driver::main(argc, argv); }
