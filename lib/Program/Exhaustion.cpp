//===- Exhaustion.cpp - when the system has no more to give ---------------===//
//
// Two ways lead here. `new` that fails asks its handler. What the standard library throws by itself (a vector that would be
// larger than any can be, a thread that cannot be started) finds nobody who catches it, and becomes a call of the terminate
// handler: this is the one file that may look at an exception. There may be no memory to say it with, so nothing is allocated.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Exhaustion.h"

#include <cassert>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

static const char *theTool = "";
static int theCode = 1;
static std::terminate_handler before = nullptr;

static void put(const char *text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

[[noreturn]] static void end(const char *why) {
  assert(*theTool && "no tool has a name");
  put(theTool);
  put(": error: ");
  put(why);
  put("\n");
  ::_exit(theCode);
}

void cleave::program::endWithoutMemory() { end("out of memory"); }
void cleave::program::endWithoutThreads() { end("cannot start a thread: the system has none left"); }

/// Other exceptions are bugs, and stay with whoever looked after these before.
static void endWithException() {
  if (std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::bad_alloc &) {
      cleave::program::endWithoutMemory();
    } catch (const std::length_error &) {
      end("out of memory: something would be larger than the address space");
    } catch (const std::system_error &error) {
      if (error.code() == std::errc::resource_unavailable_try_again)
        cleave::program::endWithoutThreads();
      end(error.what());
    } catch (...) {
    }
  }
  before();
}

bool cleave::program::completes(const std::function<void()> &call) {
  try {
    call();
    return true;
  } catch (const std::bad_alloc &) {
  } catch (const std::length_error &) {
  }
  return false;
}

void cleave::program::endWhenExhausted(const char *tool, int code) {
  theTool = tool;
  theCode = code;
  std::set_new_handler([] { endWithoutMemory(); });
  before = std::set_terminate(endWithException);
}
