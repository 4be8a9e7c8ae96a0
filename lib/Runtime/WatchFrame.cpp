//===- WatchFrame.cpp - what watches send each other ----------------------===//
//
// What comes in is from anybody until a connection has proved that it is a rank's, and is bounded at all times.
//
//===----------------------------------------------------------------------===//
#include "WatchFrame.h"
#include "cleave/Program/Error.h"

#include <algorithm>
#include <cstring>

using namespace cleave::runtime;
namespace program = cleave::program;

static constexpr uint32_t kMagic = 0x43574631;
/// A log of 64 entries is a few kilobytes.
static constexpr uint32_t kLargestText = 1 << 20;

std::string cleave::runtime::encodeFrame(const Frame &frame) {
  uint32_t words[4] = {kMagic, uint32_t(frame.kind), uint32_t(frame.about), uint32_t(frame.text.size())};
  return std::string(reinterpret_cast<const char *>(words), sizeof(words)) + frame.text;
}

bool cleave::runtime::takeFrame(std::string &received, Frame &frame) {
  uint32_t words[4];
  if (received.size() < sizeof(words))
    return false;
  std::memcpy(words, received.data(), sizeof(words));
  bool isFrame = words[0] == kMagic && words[1] <= uint32_t(Frame::Kind::Chosen) && words[3] <= kLargestText;
  if (!isFrame || received.size() < sizeof(words) + words[3])
    return false;
  frame.kind = Frame::Kind(words[1]);
  frame.about = int32_t(words[2]);
  frame.text = received.substr(sizeof(words), words[3]);
  received.erase(0, sizeof(words) + words[3]);
  return true;
}

std::string cleave::runtime::sanitizeLines(const std::string &text) {
  std::string clean;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    clean += program::printable(std::string_view(text).substr(begin, end - begin));
    clean += end < text.size() ? "\n" : "";
    begin = end + 1;
  }
  return clean;
}

std::string cleave::runtime::encodeFailure(const Failure &failure) {
  int32_t words[4] = {int32_t(failure.cause), failure.rank, failure.peer, int32_t(failure.operation.size())};
  return std::string(reinterpret_cast<const char *>(words), sizeof(words)) + failure.operation + failure.detail;
}

bool cleave::runtime::decodeFailure(const std::string &text, Failure &failure) {
  int32_t words[4];
  if (text.size() < sizeof(words))
    return false;
  std::memcpy(words, text.data(), sizeof(words));
  if (words[0] < 0 || words[0] > int32_t(Cause::System) || words[3] < 0 ||
      text.size() - sizeof(words) < size_t(words[3]))
    return false;
  failure.cause = Cause(words[0]);
  failure.rank = words[1];
  failure.peer = words[2];
  failure.operation = program::printable(std::string_view(text).substr(sizeof(words), size_t(words[3])));
  failure.detail = program::printable(std::string_view(text).substr(sizeof(words) + size_t(words[3])));
  return true;
}
