//===- Progress.cpp - what takes so long ----------------------------------===//
//
// The line is cut to the terminal's width: one that wraps could not be taken away. Where there is no terminal there is no
// thread either.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runner/Progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace cleave::runner;

static double getSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress::Progress(int file, double quiet) : file(file), began(getSeconds()) {
  // Without a thread there is no line.
  if (isatty(file))
    (void)thread.start([this, quiet] { work(quiet); });
}

Progress::~Progress() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
    erase();
  }
  changed.notify_one();
  thread.join();
}

void Progress::say(std::string what) {
  std::lock_guard<std::mutex> lock(mutex);
  text = std::move(what);
  if (text.empty())
    erase();
}

void Progress::hide() {
  std::lock_guard<std::mutex> lock(mutex);
  erase();
}

/// Five times a second, once the quiet is over.
void Progress::work(double quiet) {
  constexpr std::chrono::milliseconds tick(200);
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, std::chrono::duration<double>(quiet), [&] { return isOver; });
  while (!isOver) {
    if (!text.empty())
      show();
    changed.wait_for(lock, tick, [&] { return isOver; });
  }
}

/// What cannot be written is not missed.
void Progress::show() {
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), ", %.0f s", getSeconds() - began);
  std::string line = text + seconds;
  winsize size = {};
  size_t width = ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
  line.resize(std::min(line.size(), width - 1));
  line = "\r" + line + "\033[K";
  isShown = write(file, line.data(), line.size()) > 0;
}

void Progress::erase() {
  if (isShown)
    isShown = write(file, "\r\033[K", 4) < 0;
}

std::string cleave::runner::formatLoading(uint64_t loaded, uint64_t total) {
  char text[64];
  std::snprintf(text, sizeof(text), "loading weights, %.1f of %.1f MB", double(loaded) * 1e-6, double(total) * 1e-6);
  return text;
}
