//===- Messages.h - operations as messages between members ------*- C++ -*-===//
//
// What each member sends to each other one, as bytes behind a header that says what the sender is doing; and what is made of
// the messages that came. Nothing here sends.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_MESSAGES_H
#define CLEAVE_LIB_RUNTIME_MESSAGES_H

#include "cleave/Runtime/Operation.h"

namespace cleave::runtime {

using Message = std::vector<char>;

/// Bytes in front of what a message carries.
constexpr uint64_t kMessageHeader = 64;

/// Which message: of a round, from a member to another one of a group of so many.
struct Letter {
  uint32_t members = 0, from = 0, to = 0;
  unsigned round = 0;
  uint64_t number = 0;
};

/// A large all_reduce: members combine one share each, and then send it to all.
bool hasSecondRound(const Operation &operation);
/// How many messages each member sends to each other one in a round, one behind the other. Long operands go in several: so that the
/// first ones are combined while the others travel, and no buffer is larger than the cache.
uint64_t countMessages(const Operation &operation, uint64_t members);

/// Makes `message`, whose memory is used again, of what the letter's sender has: of the second round what it has combined.
void pack(const Operation &operation, uint64_t digest, const Letter &letter, Message &message);
/// Carries out what messages of one round and number bring to member `letter.to`. They are by member, and have been checked; there is
/// none of the member's own.
void unpack(const Operation &operation, const Letter &letter, const std::vector<const Message *> &messages);

/// What is wrong with a letter that came; nothing if both do the same.
std::optional<std::string> findMismatch(const Operation &operation, uint64_t digest, const Letter &letter,
                                        const Message &message);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_MESSAGES_H
