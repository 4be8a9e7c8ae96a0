//===- Server.cpp - plans in an editor ------------------------------------===//
//
// The protocol, and the two threads of Server.h. A plan is looked at when it is asked about, or when there is nothing else to do: while somebody
// types quickly, only the last text is. Of requests about a text that is older than the next one in the queue nothing is answered but that.
//
//===----------------------------------------------------------------------===//
#include "cleave/Editor/Server.h"

#include "Answers.h"
#include "Cursor.h"
#include "llvm/Support/LSP/Transport.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

using namespace cleave;
using namespace cleave::editor;
using namespace llvm;

/// So many lines at the top of a plan may say which model it is for.
static constexpr size_t kTopLines = 10;

namespace {
/// What editors may say when they begin: a model, for plans that name none.
struct InitializeParams {
  std::string model;
};

/// What requests and notifications about a plan have, as far as one has it. The name of a plan is kept as it is: one that is not saved has one
/// that is no path.
struct PlanParams {
  std::string uri, text;
  int64_t version = 0;
  lsp::Position position;
  lsp::Range range;
  std::vector<lsp::TextDocumentContentChangeEvent> changes;
};

bool fromJSON(const json::Value &value, InitializeParams &params, json::Path) {
  const json::Object *object = value.getAsObject();
  const json::Object *own = object ? object->getObject("initializationOptions") : nullptr;
  if (std::optional<StringRef> model = own ? own->getString("model") : std::nullopt)
    params.model = model->str();
  return true;
}

bool fromJSON(const json::Value &value, PlanParams &params, json::Path path) {
  json::ObjectMapper object(value, path);
  const json::Object *document = object ? value.getAsObject()->getObject("textDocument") : nullptr;
  std::optional<StringRef> uri = document ? document->getString("uri") : std::nullopt;
  if (!uri) {
    path.report("expected a textDocument with a uri");
    return false;
  }
  params.uri = uri->str();
  params.text = document->getString("text").value_or("").str();
  params.version = document->getInteger("version").value_or(0);
  return object.mapOptional("position", params.position) && object.mapOptional("range", params.range) &&
         object.mapOptional("contentChanges", params.changes);
}

/// A plan that is open.
struct Document {
  Text text{""};
  int64_t version = 0;
  /// Of the text as it is; nothing: it is not looked at yet.
  std::optional<Analysis> analysis;
};

/// Closures that one thread runs in order; when there are none, it runs `idle` as long as that has something to do.
class Queue {
public:
  explicit Queue(std::function<bool()> idle) : idle(std::move(idle)), worker([this] { run(); }) {}

  void push(unique_function<void()> task) {
    std::lock_guard<std::mutex> lock(mutex);
    tasks.push_back(std::move(task));
    changed.notify_one();
  }
  /// Runs what is there, and ends.
  void finish() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isOver = true;
      changed.notify_one();
    }
    worker.join();
  }

private:
  void run();

  std::function<bool()> idle;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<unique_function<void()>> tasks;
  bool isOver = false;
  std::thread worker; ///< the last member: it begins when all others are there
};

class Server {
public:
  Server(const CompileOptions &options, lsp::MessageHandler &handler);

  int getExitCode() const { return isShutDown ? 0 : 1; }
  void finish() { queue.finish(); }

private:
  // Requests and notifications.
  void onInitialize(const InitializeParams &params, lsp::Callback<json::Value> reply);
  void onInitialized(const lsp::NoParams &) {}
  void onShutdown(const lsp::NoParams &, lsp::Callback<std::nullptr_t> reply);
  void onOpen(const PlanParams &params);
  void onChange(const PlanParams &params);
  void onClose(const PlanParams &params);
  void onCompletion(const PlanParams &params, lsp::Callback<lsp::CompletionList> reply);
  void onHover(const PlanParams &params, lsp::Callback<std::optional<lsp::Hover>> reply);
  void onHints(const PlanParams &params, lsp::Callback<std::vector<lsp::InlayHint>> reply);
  void onDefinition(const PlanParams &params, lsp::Callback<json::Value> reply);

  /// Runs `answer` on the document as the request sees it; an error where it is not open, or the server is in no state to answer.
  template <typename Result>
  void answer(const PlanParams &params, lsp::Callback<Result> reply, std::function<Result(Document &)> answer);
  /// An error where requests may not be made now.
  Error checkState() const;
  CompileOptions findModel(StringRef uri, const Document &document) const;
  std::shared_ptr<const Model> findNames(StringRef uri, const Document &document);
  const Analysis &look(StringRef uri, Document &document);
  bool lookAtNext();
  void publish(StringRef uri, const Document &document, json::Array diagnostics);

  CompileOptions options;
  // Of the thread that reads.
  bool isInitialized = false, isShutDown = false;
  std::map<std::string, int64_t> queuedVersions;
  std::mutex versions;
  // Of the thread that answers.
  std::map<std::string, Document> documents;
  Models models;
  lsp::OutgoingNotification<json::Value> sendDiagnostics;
  Queue queue; ///< the last member: its thread uses all others
};
} // namespace

/// Closures run without the lock: whoever reads goes on meanwhile.
void Queue::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    if (!tasks.empty()) {
      unique_function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      lock.lock();
      continue;
    }
    if (isOver)
      return;
    lock.unlock();
    bool isBusy = idle();
    lock.lock();
    if (!isBusy)
      changed.wait(lock, [&] { return !tasks.empty() || isOver; });
  }
}

Server::Server(const CompileOptions &options, lsp::MessageHandler &handler)
    : options(options), sendDiagnostics(handler.outgoingNotification<json::Value>("textDocument/publishDiagnostics")),
      queue([this] { return lookAtNext(); }) {
  handler.method("initialize", this, &Server::onInitialize);
  handler.notification("initialized", this, &Server::onInitialized);
  handler.method("shutdown", this, &Server::onShutdown);
  handler.notification("textDocument/didOpen", this, &Server::onOpen);
  handler.notification("textDocument/didChange", this, &Server::onChange);
  handler.notification("textDocument/didClose", this, &Server::onClose);
  handler.method("textDocument/completion", this, &Server::onCompletion);
  handler.method("textDocument/hover", this, &Server::onHover);
  handler.method("textDocument/inlayHint", this, &Server::onHints);
  handler.method("textDocument/definition", this, &Server::onDefinition);
}

//===----------------------------------------------------------------------===//
// Looking at plans
//===----------------------------------------------------------------------===//

/// `# model: gpt2.onnx` in a comment at the top; empty where there is none. `line` is its number, from 0.
static StringRef findModelComment(const Text &text, size_t &line) {
  for (line = 0; line < std::min(kTopLines, text.countLines()); ++line) {
    StringRef comment = text.getLine(line).trim();
    if (comment.consume_front("#") && (comment = comment.ltrim(), comment.consume_front("model:")))
      return comment.trim();
  }
  line = 0;
  return "";
}

/// The model of a plan: that of its comment, seen from the folder of the plan, or else of the server.
CompileOptions Server::findModel(StringRef uri, const Document &document) const {
  CompileOptions found = options;
  Expected<lsp::URIForFile> file = lsp::URIForFile::fromURI(uri);
  std::string folder = file ? sys::path::parent_path(file->file()).str() : "";
  consumeError(file.takeError());
  size_t line = 0;
  if (StringRef named = findModelComment(document.text, line); !named.empty()) {
    SmallString<128> path(folder);
    sys::path::append(path, named);
    found.model = sys::path::is_absolute(named) || !sys::fs::exists(path) ? named.str() : path.str().str();
  }
  return found;
}

/// The names of the model of a plan, whether or not the plan can be read now. Null: it has none, or none that can be read.
std::shared_ptr<const Model> Server::findNames(StringRef uri, const Document &document) {
  CompileOptions found = findModel(uri, document);
  // Sizes as they are in the text, which may be no plan now.
  forEachKey(document.text.get(), spmd::PlanSection::Symbols, [&](const Cursor &dim, StringRef size) {
    int64_t number = 0;
    if (!size.getAsInteger(10, number) && number > 0)
      found.dims.try_emplace(dim.word.str(), number);
  });
  return models.get(found);
}

const Analysis &Server::look(StringRef uri, Document &document) {
  if (!document.analysis) {
    document.analysis = analyze(document.text, findModel(uri, document));
    size_t line = 0;
    findModelComment(document.text, line);
    publish(uri, document, listDiagnostics(document.text, *document.analysis, uri, line));
  }
  return *document.analysis;
}

/// True if there was a plan to be looked at.
bool Server::lookAtNext() {
  for (auto &[uri, document] : documents)
    if (!document.analysis)
      return look(uri, document), true;
  return false;
}

void Server::publish(StringRef uri, const Document &document, json::Array diagnostics) {
  sendDiagnostics(json::Object{{"uri", uri}, {"version", document.version}, {"diagnostics", std::move(diagnostics)}});
}

//===----------------------------------------------------------------------===//
// The life of a server
//===----------------------------------------------------------------------===//

Error Server::checkState() const {
  if (isShutDown)
    return make_error<lsp::LSPError>("the server is shut down", lsp::ErrorCode::InvalidRequest);
  if (!isInitialized)
    return make_error<lsp::LSPError>("the server is not initialized", lsp::ErrorCode::ServerNotInitialized);
  return Error::success();
}

void Server::onInitialize(const InitializeParams &params, lsp::Callback<json::Value> reply) {
  if (isInitialized || isShutDown)
    return reply(make_error<lsp::LSPError>("the server is initialized already", lsp::ErrorCode::InvalidRequest));
  isInitialized = true;
  if (!params.model.empty())
    options.model = params.model;
  json::Object capabilities{
      {"positionEncoding", "utf-16"},
      {"textDocumentSync",
       json::Object{{"openClose", true}, {"change", static_cast<int>(lsp::TextDocumentSyncKind::Incremental)}}},
      {"completionProvider", json::Object{{"triggerCharacters", json::Array{" ", "[", "{", ",", ":", "\"", "."}}}},
      {"hoverProvider", true},
      {"inlayHintProvider", true},
      {"definitionProvider", true},
  };
  reply(json::Object{{"serverInfo", json::Object{{"name", "cleave lsp"}, {"version", CLEAVE_VERSION}}},
                     {"capabilities", std::move(capabilities)}});
}

/// Answered behind all that was asked before. What comes later is refused at once, by the thread that reads.
void Server::onShutdown(const lsp::NoParams &, lsp::Callback<std::nullptr_t> reply) {
  if (Error error = checkState())
    return reply(std::move(error));
  isShutDown = true;
  queue.push([reply = std::move(reply)]() mutable { reply(nullptr); });
}

//===----------------------------------------------------------------------===//
// Documents
//===----------------------------------------------------------------------===//

/// Nothing is looked at yet: an editor that opens ten plans at once asks about one.
void Server::onOpen(const PlanParams &params) {
  if (Error error = checkState())
    return consumeError(std::move(error));
  queue.push([this, params] { documents[params.uri] = {Text(params.text), params.version, std::nullopt}; });
}

/// Counted as soon as it is read, so that requests in front of it in the queue know that they are about an old text.
void Server::onChange(const PlanParams &params) {
  if (Error error = checkState())
    return consumeError(std::move(error));
  {
    std::lock_guard<std::mutex> lock(versions);
    ++queuedVersions[params.uri];
  }
  queue.push([this, params] {
    {
      std::lock_guard<std::mutex> lock(versions);
      --queuedVersions[params.uri];
    }
    auto found = documents.find(params.uri);
    if (found == documents.end())
      return;
    Document &document = found->second;
    for (const lsp::TextDocumentContentChangeEvent &event : params.changes)
      document.text.change(event);
    document.version = params.version;
    document.analysis.reset();
  });
}

/// What was said of a plan goes with it.
void Server::onClose(const PlanParams &params) {
  if (Error error = checkState())
    return consumeError(std::move(error));
  queue.push([this, params] {
    auto found = documents.find(params.uri);
    if (found == documents.end())
      return;
    publish(params.uri, found->second, {});
    documents.erase(found);
  });
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

template <typename Result>
void Server::answer(const PlanParams &params, lsp::Callback<Result> reply, std::function<Result(Document &)> answer) {
  if (Error error = checkState())
    return reply(std::move(error));
  queue.push([this, uri = params.uri, reply = std::move(reply), answer = std::move(answer)]() mutable {
    auto found = documents.find(uri);
    if (found == documents.end())
      return reply(make_error<lsp::LSPError>("the plan is not open", lsp::ErrorCode::InvalidParams));
    bool isOld = false;
    {
      std::lock_guard<std::mutex> lock(versions);
      isOld = queuedVersions[uri] > 0;
    }
    // The editor has another text by now, and will ask about that.
    if (isOld)
      return reply(make_error<lsp::LSPError>("the plan has changed", lsp::ErrorCode::ContentModified));
    reply(answer(found->second));
  });
}

/// The plan is not looked at for this, which has to be quick while somebody types.
void Server::onCompletion(const PlanParams &params, lsp::Callback<lsp::CompletionList> reply) {
  answer<lsp::CompletionList>(params, std::move(reply), [this, params](Document &document) {
    std::shared_ptr<const Model> model = findNames(params.uri, document);
    return complete(document.text, document.text.toOffset(params.position), model.get());
  });
}

/// Says what the look at this very text found.
void Server::onHover(const PlanParams &params, lsp::Callback<std::optional<lsp::Hover>> reply) {
  answer<std::optional<lsp::Hover>>(params, std::move(reply), [this, params](Document &document) {
    const Analysis &analysis = look(params.uri, document);
    std::shared_ptr<const Model> model = findNames(params.uri, document);
    return hover(document.text, document.text.toOffset(params.position), analysis, model.get());
  });
}

void Server::onHints(const PlanParams &params, lsp::Callback<std::vector<lsp::InlayHint>> reply) {
  answer<std::vector<lsp::InlayHint>>(params, std::move(reply), [this, params](Document &document) {
    return listHints(document.text, params.range, look(params.uri, document));
  });
}

void Server::onDefinition(const PlanParams &params, lsp::Callback<json::Value> reply) {
  answer<json::Value>(params, std::move(reply), [params](Document &document) -> json::Value {
    std::optional<lsp::Range> range = findDefinition(document.text, document.text.toOffset(params.position));
    return range ? json::Value(json::Object{{"uri", params.uri}, {"range", *range}}) : json::Value(nullptr);
  });
}

int cleave::editor::servePlans(const CompileOptions &options) {
  sys::ChangeStdinToBinary();
  lsp::Logger::setLogLevel(lsp::Logger::Level::Error);
  lsp::JSONTransport transport(stdin, outs());
  lsp::MessageHandler handler(transport);
  Server server(options, handler);
  // An editor that is gone without a word has closed the stream.
  consumeError(transport.run(handler));
  server.finish();
  return server.getExitCode();
}
