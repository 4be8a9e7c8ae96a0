//===- Messages.cpp - sends and receives of one group ---------------------===//
//
// All of a group are under way at once. A send is done when it has been received, as on a GPU, where nothing stores it in
// between: two ranks that send before they receive, outside of a group, wait for ever here too.
//
//===----------------------------------------------------------------------===//
#include "Comm.h"

#include <algorithm>

using namespace cleave::cuda;

namespace {
/// Numbers are given when the group is enqueued: the n-th send meets the n-th receive.
class Messages {
public:
  Messages(const MemberRef &member, const std::vector<Message> &list) : member(member), list(list) {
    for (Message &message : this->list)
      message.number = ++(message.isSend ? member->sends : member->receives)[message.peer];
  }

  /// Each message goes on by itself; the group is done when all are.
  Progress run() {
    if (member->isAborted)
      return Progress::Done;
    bool moved = false, areDone = true;
    for (Message &message : list) {
      if (!message.isDone) {
        Progress progress = message.isSend ? send(message) : receive(message);
        if (member->error != NcclResult::Success)
          return progress;
        moved |= progress != Progress::Blocked;
        message.isDone = progress == Progress::Done;
      }
      areDone &= message.isDone;
    }
    return areDone ? Progress::Done : moved ? Progress::Moved : Progress::Blocked;
  }

private:
  /// First what was sent before must have been taken, then this one is written, then it must be taken.
  Progress send(Message &message) {
    const Room &room = *member->room;
    Channel &channel = room.getChannel(room.rank, message.peer);
    if (message.isPosted)
      return channel.received >= message.number ? Progress::Done : Progress::Blocked;
    if (channel.received + 1 < message.number)
      return Progress::Blocked;
    if (!room.write(room.getPart(room.rank, message.peer), message.memory,
                    message.call.count * getBytes(message.call.type)))
      return failMember(*member, NcclResult::SystemError, "no room on the disk for what another is to read");
    channel.call = message.call;
    channel.sent = message.number;
    message.isPosted = true;
    return Progress::Moved;
  }

  /// The sender is told when all bytes have been read.
  Progress receive(Message &message) {
    const Room &room = *member->room;
    Channel &channel = room.getChannel(message.peer, room.rank);
    if (channel.sent < message.number)
      return Progress::Blocked;
    if (channel.call.count != message.call.count || channel.call.type != message.call.type)
      return failMember(*member, NcclResult::InvalidUsage,
                        "rank " + std::to_string(room.rank) + " expects " + message.call.describe() + " from rank " +
                            std::to_string(message.peer) + ", which calls " + channel.call.describe());
    if (!room.read(room.getPart(message.peer, room.rank), 0, message.memory,
                   message.call.count * getBytes(message.call.type)))
      return failMember(*member, NcclResult::SystemError, "cannot read what another rank wrote");
    channel.received = message.number;
    return Progress::Done;
  }

  MemberRef member;
  std::vector<Message> list;
};
} // namespace

MakeStep cleave::cuda::makeMessages(const MemberRef &member, const std::vector<Message> &messages, bool hangs) {
  return [=]() -> Step {
    auto group = std::make_shared<Messages>(member, messages);
    return [=] { return hangs && !member->isAborted ? Progress::Blocked : group->run(); };
  };
}
