//===- Streams.cpp - streams, events and graphs ---------------------------===//
//
// An event carries the clock of its stream: who waits for it is ordered behind all that came before. While a stream is
// captured, its commands become nodes of a graph, whose edges are the order of streams and events; a captured event that
// another stream waits for draws that stream into the capture.
//
//   compute  ──A──●──────────B──▶──C     ● record, ▶ wait: D is behind A, C behind B and D; B and D are in no order
//   copy          └──▶──D──●─────┘
//
// A captured stream keeps the nodes that its next one must follow (its frontier); an event takes them along. Clocks go on while
// capturing, against accesses of the graph alone, so that a missing edge shows before the graph has ever run.
//
//===----------------------------------------------------------------------===//
#include "Entries.h"
#include "State.h"

#include <algorithm>

using namespace cleave::cuda;

/// Asking the host about what is being captured breaks the capture.
static Result refuseCaptured(const char *call, GraphHandle &graph) {
  graph.broken = std::string(call) + " was called in between";
  return refuse(call, Result::StreamCaptureUnsupported, "the stream is captured");
}

namespace cleave::cuda {
extern "C" {

/// Flags and priority change nothing: streams do not wait for the default one.
Result cuStreamCreateWithPriority(Stream *stream, unsigned, int) {
  CLEAVE_ENTER();
  ContextHandle *device = getCurrent();
  if (!device)
    return Result::InvalidContext;
  Lock lock(device->mutex);
  *stream = addStream(*device);
  return Result::Success;
}

Result cuStreamDestroy_v2(Stream stream) {
  CLEAVE_ENTER();
  if (!stream)
    return Result::InvalidHandle;
  ContextHandle &device = *stream->device;
  // What is in it is still done.
  Result result = waitFor(device, [=] { return stream->queue.empty(); });
  Lock lock(device.mutex);
  join(device.host, stream->clock);
  device.streams.erase(std::remove_if(device.streams.begin(), device.streams.end(),
                                      [=](const auto &other) { return other.get() == stream; }),
                       device.streams.end());
  return result;
}

/// From here on the host is ordered behind the stream, and so is all that it enqueues.
Result cuStreamSynchronize(Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream)
    return Result::InvalidContext;
  if (stream->capture)
    return refuseCaptured(__func__, *stream->capture);
  ContextHandle &device = *stream->device;
  Result result = waitFor(device, [=] { return stream->queue.empty(); });
  Lock lock(device.mutex);
  join(device.host, stream->clock);
  device.accesses.forget(device.host);
  return result;
}

/// A stream that is found empty orders the host as a wait does.
Result cuStreamQuery(Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream)
    return Result::InvalidContext;
  if (stream->capture)
    return refuseCaptured(__func__, *stream->capture);
  ContextHandle &device = *stream->device;
  poll(device);
  Lock lock(device.mutex);
  if (device.sticky != Result::Success)
    return device.sticky;
  if (!stream->queue.empty())
    return Result::NotReady;
  join(device.host, stream->clock);
  device.accesses.forget(device.host);
  return Result::Success;
}

/// What counts is the last record before this call; an event that was never recorded holds nobody.
Result cuStreamWaitEvent(Stream handle, Event event, unsigned) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream || !event)
    return Result::InvalidHandle;
  Lock lock(stream->device->mutex);
  if (event->capture) {
    if (!stream->capture) { // drawn into the capture
      stream->capture = event->capture;
      stream->clockBefore = stream->clock;
      stream->frontier.clear();
    } else if (stream->capture != event->capture) {
      return refuse(__func__, Result::StreamCaptureMerge, "the event is of another capture");
    }
    for (size_t node : event->frontier)
      if (std::find(stream->frontier.begin(), stream->frontier.end(), node) == stream->frontier.end())
        stream->frontier.push_back(node);
    join(stream->clock, event->clock);
    return Result::Success;
  }
  if (stream->capture)
    return refuse(__func__, Result::StreamCaptureIsolation, "the event was recorded before the capture");
  if (event->recorded == 0)
    return Result::Success;
  join(stream->clock, event->clock);
  uint64_t ticket = event->recorded;
  return enqueue(*stream, "wait for an event", {},
                 [=]() -> Step { return [=] { return event->done >= ticket ? Progress::Done : Progress::Blocked; }; });
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Result cuEventCreate(Event *event, unsigned flags) {
  CLEAVE_ENTER();
  if (!getCurrent())
    return Result::InvalidContext;
  *event = new EventHandle;
  (*event)->device = getCurrent();
  (*event)->hasTime = !(flags & kEventDisableTiming);
  return Result::Success;
}

/// An event may go while it is waited for; here it stays until it has been recorded.
Result cuEventDestroy_v2(Event event) {
  CLEAVE_ENTER();
  if (!event)
    return Result::InvalidHandle;
  // Commands in queues may still name it.
  Result result = waitFor(*event->device, [=] { return event->done >= event->recorded; });
  delete event;
  return result;
}

/// Recording again moves the event; who waits already waits for the record before.
Result cuEventRecord(Event event, Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream || !event)
    return Result::InvalidHandle;
  Lock lock(stream->device->mutex);
  event->capture = stream->capture;
  if (stream->capture) {
    event->clock = stream->clock;
    event->frontier = stream->frontier;
    return Result::Success;
  }
  uint64_t ticket = ++event->recorded;
  Result result = enqueue(*stream, "record of an event", {}, [=]() -> Step {
    return [=] {
      event->done = ticket;
      event->time = std::chrono::steady_clock::now();
      return Progress::Done;
    };
  });
  event->clock = stream->clock;
  return result;
}

/// As cuStreamQuery, up to the last record.
Result cuEventQuery(Event event) {
  CLEAVE_ENTER();
  if (!event)
    return Result::InvalidHandle;
  if (event->capture)
    return refuse(__func__, Result::CapturedEvent, "the event is of a capture");
  ContextHandle &device = *event->device;
  poll(device);
  Lock lock(device.mutex);
  if (device.sticky != Result::Success)
    return device.sticky;
  if (event->done < event->recorded)
    return Result::NotReady;
  join(device.host, event->clock);
  return Result::Success;
}

/// As cuStreamSynchronize, up to the last record.
Result cuEventSynchronize(Event event) {
  CLEAVE_ENTER();
  if (!event)
    return Result::InvalidHandle;
  if (event->capture)
    return refuse(__func__, Result::CapturedEvent, "the event is of a capture");
  ContextHandle &device = *event->device;
  Result result = waitFor(device, [=] { return event->done >= event->recorded; });
  Lock lock(device.mutex);
  join(device.host, event->clock);
  device.accesses.forget(device.host);
  return result;
}

/// Time of the emulation: it says which came first, and nothing of a GPU.
Result cuEventElapsedTime(float *milliseconds, Event start, Event end) {
  CLEAVE_ENTER();
  if (!start || !end || !start->hasTime || !end->hasTime || !start->recorded || !end->recorded)
    return Result::InvalidHandle;
  if (start->done < start->recorded || end->done < end->recorded)
    return Result::NotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return Result::Success;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// The mode is not looked at: what it forbids to other threads is forbidden to all, where it matters.
Result cuStreamBeginCapture_v2(Stream stream, CaptureMode) {
  CLEAVE_ENTER();
  if (!stream) // the default stream has no captures
    return Result::StreamCaptureUnsupported;
  Lock lock(stream->device->mutex);
  if (stream->capture)
    return refuse(__func__, Result::StreamCaptureUnsupported, "the stream is captured already");
  stream->capture = std::make_shared<GraphHandle>();
  stream->capture->origin = stream;
  stream->clockBefore = stream->clock;
  stream->frontier.clear();
  return Result::Success;
}

/// Clocks go back to where they were: nothing has run.
Result cuStreamEndCapture(Stream stream, Graph *graph) {
  CLEAVE_ENTER();
  *graph = nullptr;
  if (!stream || !stream->capture)
    return Result::StreamCaptureUnmatched;
  ContextHandle &device = *stream->device;
  Lock lock(device.mutex);
  CaptureRef capture = stream->capture;
  if (capture->origin != stream)
    return refuse(__func__, Result::StreamCaptureUnmatched, "the capture began on another stream");
  bool isJoined = true;
  for (auto &other : device.streams) {
    if (other->capture != capture)
      continue;
    // All that other streams did must lie before the end of this one.
    isJoined &= get(other->clock, other->number) <=
                std::max(get(stream->clock, other->number), get(other->clockBefore, other->number));
  }
  for (auto &other : device.streams)
    if (other->capture == capture) {
      other->capture = nullptr;
      other->clock = other->clockBefore;
      other->frontier.clear();
    }
  if (!capture->broken.empty())
    return refuse(__func__, Result::StreamCaptureInvalidated, capture->broken);
  if (!isJoined)
    return refuse(__func__, Result::StreamCaptureUnjoined, "a stream that was drawn in is not waited for");
  *graph = new GraphHandle(*capture);
  return Result::Success;
}

/// A copy: the graph may go.
Result cuGraphInstantiateWithFlags(GraphExec *executable, Graph graph, unsigned long long) {
  CLEAVE_ENTER();
  if (!graph)
    return Result::InvalidHandle;
  *executable = new GraphExecHandle{graph->nodes};
  return Result::Success;
}

/// Each launch makes the steps anew.
Result cuGraphLaunch(GraphExec executable, Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream || !executable)
    return Result::InvalidHandle;
  Lock lock(stream->device->mutex);
  return launchGraph(*stream, *executable);
}

Result cuGraphExecDestroy(GraphExec executable) {
  CLEAVE_ENTER();
  delete executable;
  return Result::Success;
}

Result cuGraphDestroy(Graph graph) {
  CLEAVE_ENTER();
  delete graph;
  return Result::Success;
}

} // extern "C"
} // namespace cleave::cuda
