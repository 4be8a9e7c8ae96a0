//===- Interruption.cpp - work that nobody waits for any more -------------===//
//
// Of the thread, not of a compilation: who looks, as a kernel's loop or a search, knows no compilation, and several threads compile at once.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Interruption.h"

using namespace cleave;

static thread_local const std::atomic<bool> *current = nullptr;

Interruption::Interruption(const std::atomic<bool> &asked) : before(current) { current = &asked; }

Interruption::~Interruption() { current = before; }

bool Interruption::isAsked() { return current && current->load(std::memory_order_relaxed); }
