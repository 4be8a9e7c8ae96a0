//===- Local.cpp - a process for each rank, on this machine ---------------===//
//
// Each child is this program with the same words, but for --local, and an environment that says which rank it is
// (Runtime/Launch.cpp). They find rank 0 by a file in a folder of their own. One loop reads what they print, hears their ends
// and the signals of this process:
//
//   signal ─▶ all children, twice ─▶ SIGKILL        a child fails ─▶ 3 s ─▶ SIGTERM to the rest ─▶ 2 s ─▶ SIGKILL
//
// The system kills the children when this process is killed, so nothing is left in any case.
//
//===----------------------------------------------------------------------===//
#include "Local.h"
#include "cleave/Program/File.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Files.h"
#include "cleave/Runtime/FlightRecorder.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <set>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace cleave::runner;
namespace runtime = cleave::runtime;
namespace program = cleave::program;
using cleave::program::concat;
using cleave::runtime::getNow;

/// From the first failure to SIGTERM and to SIGKILL: ranks that can, say within two seconds what has failed.
static constexpr int64_t kSecond = 1000000000, kPolite = 3 * kSecond, kFinal = 5 * kSecond;
static constexpr int kTickMilliseconds = 50;
static const std::string kError = "cleave-run: error: ";

namespace {

/// One end of a pipe that a child prints into; text comes out line by line.
struct Stream {
  int descriptor = -1;
  FILE *to = nullptr;
  std::string text;
};

struct Child {
  pid_t process = -1;
  int status = 0;
  bool hasEnded = false;
  Stream streams[2];
};

class Local {
public:
  explicit Local(const RunOptions &options) : options(options) {}
  ~Local();
  int run();

private:
  int fail(const std::string &why) const;
  bool readRanks(uint32_t &ranks, std::string &why) const;
  bool start(uint32_t rank, std::string &why);
  [[noreturn]] void become(uint32_t rank, const int pipes[2]) const;
  void read(uint32_t rank, Stream &stream, bool isOver);
  void print(uint32_t rank, FILE *to, const std::string &line);
  void reap();
  void hearSignals();
  void end();
  void sendAll(int number);
  int getCode() const;

  const RunOptions &options;
  std::string folder;
  sigset_t mask = {};
  int signals = -1, came = 0, sent = 0;
  pid_t own = getpid();
  int64_t failedAt = 0;
  std::vector<Child> children;
  /// Lines about failures that were printed.
  std::set<std::string> said;
};

} // namespace

int Local::fail(const std::string &why) const {
  std::fprintf(stderr, "%s%s\n", kError.c_str(), why.c_str());
  return kBadInput;
}

//===----------------------------------------------------------------------===//
// Starting
//===----------------------------------------------------------------------===//

/// Children check the program for themselves; here only its ranks count.
bool Local::readRanks(uint32_t &ranks, std::string &why) const {
  runtime::FileBytes file;
  if (program::Status error = file.map(options.program)) {
    why = error->message;
    return false;
  }
  program::Result<program::Program> read = program::readProgram(file.get(), program::Verify(options.verify));
  if (!read) {
    why = concat("cannot run ", program::quote(options.program), ": ", read.getError().message);
    return false;
  }
  ranks = read->ranks;
  return true;
}

/// In the child. Nobody else runs in this process, so everything may be called.
void Local::become(uint32_t rank, const int pipes[2]) const {
  // From here on the end of the parent is that of the child; if it has ended before, nobody will tell.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != own)
    _exit(kRunFault);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  for (int which : {0, 1})
    if (pipes[which] >= 0)
      dup2(pipes[which], which == 0 ? STDOUT_FILENO : STDERR_FILENO);
  setenv("CLEAVE_RANK", std::to_string(rank).c_str(), 1);
  setenv("CLEAVE_RANKS", std::to_string(children.size()).c_str(), 1);
  setenv("CLEAVE_LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("CLEAVE_LOCAL_RANKS", std::to_string(children.size()).c_str(), 1);
  setenv("CLEAVE_RENDEZVOUS", ("file:" + folder + "/rank-0").c_str(), 1);
  std::vector<char *> words = {const_cast<char *>("cleave-run")};
  for (const std::string &word : options.words)
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  execv("/proc/self/exe", words.data());
  std::fprintf(stderr, "%scannot start a process: %s\n", kError.c_str(), std::strerror(errno));
  _exit(kBadInput);
}

/// What rank 0 prints is the output, and not touched.
bool Local::start(uint32_t rank, std::string &why) {
  Child &child = children[rank];
  int writeEnds[2] = {-1, -1};
  for (int which = rank == 0 ? 1 : 0; which < 2; ++which) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      why = std::strerror(errno);
      return false;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    child.streams[which] = {ends[0], which == 0 ? stdout : stderr, ""};
    writeEnds[which] = ends[1];
  }
  child.process = fork();
  if (child.process == 0)
    become(rank, writeEnds);
  if (child.process < 0)
    why = std::strerror(errno);
  for (int end : writeEnds)
    if (end >= 0)
      close(end);
  return child.process > 0;
}

//===----------------------------------------------------------------------===//
// What they print
//===----------------------------------------------------------------------===//

/// All ranks end with the failure of the first one; it is said once. Other lines say who printed them.
void Local::print(uint32_t rank, FILE *to, const std::string &line) {
  bool isFailure = line.compare(0, kError.size(), kError) == 0;
  if (isFailure && !said.insert(line).second)
    return;
  if (isFailure)
    std::fprintf(to, "%s\n", line.c_str());
  else
    std::fprintf(to, "[rank %u] %s\n", rank, line.c_str());
  std::fflush(to);
}

/// `isOver`: the child has ended, and what is left is a line even without its end.
void Local::read(uint32_t rank, Stream &stream, bool isOver) {
  char buffer[4096];
  ssize_t got = 0;
  while (stream.descriptor >= 0 && (got = ::read(stream.descriptor, buffer, sizeof(buffer))) > 0)
    stream.text.append(buffer, size_t(got));
  for (size_t end; (end = stream.text.find('\n')) != std::string::npos; stream.text.erase(0, end + 1))
    print(rank, stream.to, stream.text.substr(0, end));
  if (stream.descriptor < 0 || !(isOver || got == 0))
    return;
  if (!stream.text.empty())
    print(rank, stream.to, stream.text);
  close(stream.descriptor);
  stream = {};
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void Local::sendAll(int number) {
  sent = number;
  for (const Child &child : children)
    if (child.process > 0 && !child.hasEnded)
      kill(child.process, number);
}

/// Ctrl-C reaches the children of a terminal by itself, and once more does no harm. A second one ends all at once.
void Local::hearSignals() {
  signalfd_siginfo info;
  while (::read(signals, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD)
      continue;
    if (came) {
      sendAll(SIGKILL);
      continue;
    }
    came = int(info.ssi_signo);
    failedAt = failedAt ? failedAt : getNow();
    sendAll(came);
  }
}

void Local::reap() {
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    Child &child = children[rank];
    if (child.hasEnded || child.process <= 0 || waitpid(child.process, &child.status, WNOHANG) != child.process)
      continue;
    child.hasEnded = true;
    for (Stream &stream : child.streams)
      read(rank, stream, /*isOver=*/true);
    if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0)
      continue;
    // Who was ended from here says nothing of what went wrong.
    if (WIFSIGNALED(child.status) && WTERMSIG(child.status) != sent)
      print(rank, stderr,
            concat(kError, "the process of rank ", rank, " was ended by signal ", WTERMSIG(child.status), ", ",
                   strsignal(WTERMSIG(child.status))));
    failedAt = failedAt ? failedAt : getNow();
  }
}

/// The rest of a run in which something has failed.
void Local::end() {
  int64_t since = failedAt ? getNow() - failedAt : 0;
  if (since > kFinal)
    sendAll(SIGKILL);
  else if (since > kPolite && sent != SIGTERM && sent != SIGKILL)
    sendAll(SIGTERM);
}

/// What is wrong with the input, before what followed from it on other ranks.
int Local::getCode() const {
  if (came)
    return 128 + came;
  int code = kDone;
  for (const Child &child : children) {
    int own = WIFEXITED(child.status) ? WEXITSTATUS(child.status) : int(kRunFault);
    bool isFirst = code == kDone || (code == kRunFault && own != kDone);
    code = isFirst ? own : code;
  }
  return code;
}

/// Also where not all could be started.
Local::~Local() {
  sendAll(SIGKILL);
  for (Child &child : children) {
    if (child.process > 0 && !child.hasEnded)
      waitpid(child.process, &child.status, 0);
    for (Stream &stream : child.streams)
      if (stream.descriptor >= 0)
        close(stream.descriptor);
  }
  if (signals >= 0)
    close(signals);
  if (!folder.empty()) {
    (void)unlink((folder + "/rank-0").c_str());
    (void)rmdir(folder.c_str());
  }
}

/// Until all have ended; then nothing is left to be read.
int Local::run() {
  uint32_t ranks = 0;
  std::string why;
  if (!readRanks(ranks, why))
    return fail(why);
  const char *temporary = std::getenv("TMPDIR");
  folder = concat(temporary && *temporary ? temporary : "/tmp", "/cleave-run-XXXXXX");
  if (!mkdtemp(folder.data())) {
    folder.clear();
    return fail(concat("cannot make a folder for ranks to meet: ", std::strerror(errno)));
  }
  // Signals are read like what children print, so that nothing happens in the middle of something else.
  sigset_t heard;
  sigemptyset(&heard);
  for (int number : {SIGINT, SIGTERM, SIGCHLD})
    sigaddset(&heard, number);
  // The terminal is closed; who was started with nohup goes on.
  struct sigaction action = {};
  if (sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
    sigaddset(&heard, SIGHUP);
  sigprocmask(SIG_BLOCK, &heard, &mask);
  signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
  children.resize(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    if (!start(rank, why))
      return fail(concat("cannot start the process of rank ", rank, ": ", why));
  while (!std::all_of(children.begin(), children.end(), [](const Child &child) { return child.hasEnded; })) {
    std::vector<pollfd> polled = {{signals, POLLIN, 0}};
    for (const Child &child : children)
      for (const Stream &stream : child.streams)
        polled.push_back({stream.descriptor, POLLIN, 0});
    poll(polled.data(), polled.size(), kTickMilliseconds);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      for (Stream &stream : children[rank].streams)
        read(rank, stream, /*isOver=*/false);
    hearSignals();
    reap();
    end();
  }
  return getCode();
}

int cleave::runner::runLocal(const RunOptions &options) { return Local(options).run(); }
