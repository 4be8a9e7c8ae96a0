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

/// One message per member of the group, also to oneself.
std::vector<Message> packFirst(const Operation &operation, uint64_t digest, uint64_t members, uint32_t index);
/// Carries the operation out, or its first round. Messages are by member, and have been checked.
void unpackFirst(const Operation &operation, const std::vector<Message> &messages, uint32_t index);

/// A large all_reduce: members combine one share each, and then send it to all.
bool hasSecondRound(const Operation &operation);
std::vector<Message> packSecond(const Operation &operation, uint64_t digest, uint64_t members, uint32_t index);
void unpackSecond(const Operation &operation, const std::vector<Message> &messages, uint32_t index);

/// What is wrong with what `member` sent to member `index`; nothing if both do the same.
std::optional<std::string> findMismatch(const Operation &operation, uint64_t digest, uint32_t member, uint32_t index,
                                        const Message &message);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_MESSAGES_H
