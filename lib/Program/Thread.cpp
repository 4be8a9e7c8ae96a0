//===- Thread.cpp - a thread that may not be had --------------------------===//
//
// std::thread throws where the system gives no more threads, and the runtime is built without exceptions: pthreads say so
// by a number.
// What a thread of the system is given is a job on the heap, which it deletes when it is done.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Thread.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <thread>

using namespace cleave::program;

Thread &Thread::operator=(Thread &&other) noexcept {
  assert(!isRunning && "a thread that runs is waited for");
  handle = other.handle;
  isRunning = std::exchange(other.isRunning, false);
  return *this;
}

static void *run(void *given) {
  std::unique_ptr<std::function<void()>> job(static_cast<std::function<void()> *>(given));
  (*job)();
  return nullptr;
}

Status Thread::start(std::function<void()> job) {
  auto given = std::make_unique<std::function<void()>>(std::move(job));
  if (int code = pthread_create(&handle, nullptr, run, given.get()))
    return makeError("cannot start a thread: ", std::strerror(code));
  given.release();
  isRunning = true;
  return kGood;
}

void Thread::join() {
  if (std::exchange(isRunning, false))
    pthread_join(handle, nullptr);
}

void Thread::detach() {
  if (std::exchange(isRunning, false))
    pthread_detach(handle);
}

unsigned cleave::program::countCores() { return std::max(1u, std::thread::hardware_concurrency()); }
