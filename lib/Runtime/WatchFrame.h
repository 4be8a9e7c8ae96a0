//===- WatchFrame.h - what watches send each other --------------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_WATCHFRAME_H
#define CLEAVE_LIB_RUNTIME_WATCHFRAME_H

#include "cleave/Runtime/Failure.h"
#include <cstdint>

namespace cleave::runtime {

/// On the wire: four words (magic, kind, about, bytes of text) as this machine has them, and the text.
struct Frame {
  enum class Kind : uint32_t {
    /// A guest's first: who he is, and the proof (Handshake.cpp).
    Hello,
    /// The text is what the rank came to last.
    Beat,
    Fault,
    /// The text is the rank's log.
    Record,
    /// The hub is done with a fault.
    Release,
    /// Rank `about` has left; the text is why, empty where its work was done.
    Bye,
    /// A host's first: its nonce.
    Banner,
    /// All ranks are here; the text is their cards, a line each.
    Welcome,
    /// A host's second: that it knows the secret, too.
    Proof,
    /// A guest's second: that of all its connections to this host it goes on with this one.
    Chosen,
  };
  Kind kind = Kind::Hello;
  int32_t about = 0;
  std::string text;
};

std::string encodeFrame(const Frame &frame);
/// Takes the first frame off `received`. False if it is not all there, or what is there is none: then nothing ever will be.
bool takeFrame(std::string &received, Frame &frame);

/// Text of another process as it may be printed: no control characters but the ends of lines.
std::string sanitizeLines(const std::string &text);

std::string encodeFailure(const Failure &failure);
/// Of what was said nothing is left that would disturb a terminal.
bool decodeFailure(const std::string &text, Failure &failure);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_WATCHFRAME_H
