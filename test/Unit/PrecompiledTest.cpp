//===- PrecompiledTest.cpp - GoogleTest -----------------------------------===//
//
// A library has a source; this one is there for its precompiled header.
//
//===----------------------------------------------------------------------===//
#include "PrecompiledTest.h"
