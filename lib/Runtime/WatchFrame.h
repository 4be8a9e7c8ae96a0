//===- WatchFrame.h - what watches send each other --------------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_WATCHFRAME_H
#define CLEAVE_LIB_RUNTIME_WATCHFRAME_H

#include "cleave/Runtime/Failure.h"
#include <cstdint>

namespace cleave::runtime {

/// On the wire: four words (magic, kind, about, bytes of text) as this machine has them, and the text.
struct Frame {
  enum class Kind : uint32_t {
    /// A rank's first; the text is the token of the address, how many ranks it thinks there are, and its card.
    Hello,
    /// The text is what the rank came to last.
    Beat,
    Fault,
    /// The text is the rank's log.
    Record,
    /// The hub is done with a fault.
    Release,
    /// Rank `about` has left.
    Bye,
    /// The hub's first: that it is one, and of which ranks. The text is a digest of the token.
    Banner,
    /// All ranks are here; the text is their cards, a line each.
    Welcome,
  };
  Kind kind = Kind::Hello;
  int32_t about = 0;
  std::string text;
};

std::string encodeFrame(const Frame &frame);
/// Takes the first frame off `received`. False if it is not all there, or what is there is none: then nothing ever will be.
bool takeFrame(std::string &received, Frame &frame);

std::string encodeFailure(const Failure &failure);
bool decodeFailure(const std::string &text, Failure &failure);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_WATCHFRAME_H
