//===- TrainLog.cpp - a line for each step --------------------------------===//
//
// Numbers with as many digits as tell two floats apart. A line is flushed by itself: who follows the file sees each step as it is
// done, and who is killed has lost none of them.
//
//===----------------------------------------------------------------------===//
#include "TrainLog.h"

#include <cerrno>
#include <cmath>
#include <cstring>

using namespace cleave::runner;
using cleave::program::concat;
using cleave::program::makeError;
using cleave::program::printable;
using cleave::program::Status;

TrainLog::~TrainLog() {
  if (file)
    std::fclose(file);
}

/// A log that cannot be written is an error at once: nobody wants to learn of it after a night.
Status TrainLog::put(const std::string &text) {
  if (std::fputs(text.c_str(), file) >= 0 && std::fflush(file) == 0)
    return program::kGood;
  return makeError("cannot write ", printable(path), ": ", std::strerror(errno));
}

/// A log that goes on has its names already.
Status TrainLog::open(const std::string &given, bool goesOn) {
  path = given;
  if (path.empty())
    return program::kGood;
  isCsv = path.size() > 4 && path.compare(path.size() - 4, 4, ".csv") == 0;
  file = std::fopen(path.c_str(), goesOn ? "ae" : "we");
  if (!file)
    return makeError("cannot write ", printable(path), ": ", std::strerror(errno));
  bool isNew = std::fseek(file, 0, SEEK_END) != 0 || std::ftell(file) <= 0;
  return isCsv && isNew ? put("step,epoch,loss,norm,rate,scale,seconds,samples,eval\n") : program::kGood;
}

/// `none` stands for what is not there, and for what JSON has no number for. What reads the text back gets the same number: 9 digits tell f32
/// apart, 17 f64.
static std::string format(std::optional<double> number, const char *none) {
  char text[40];
  if (!number || !std::isfinite(*number))
    return none;
  std::snprintf(text, sizeof(text), double(float(*number)) == *number ? "%.9g" : "%.17g", *number);
  return text;
}

/// Names and their order are fixed (docs/command-line.md): other programs read them.
Status TrainLog::write(const StepLine &line) {
  if (!file)
    return program::kGood;
  const char *none = isCsv ? "" : "null";
  std::string values[] = {std::to_string(line.step),         std::to_string(line.epoch),  format(line.loss, none),
                          format(line.norm, none),           format(line.rate, none),     format(line.scale, none),
                          format(float(line.seconds), none), std::to_string(line.samples)};
  constexpr const char *names[] = {"step", "epoch", "loss", "norm", "rate", "scale", "seconds", "samples"};
  std::string text;
  for (size_t i = 0; i < std::size(values); ++i)
    text += isCsv ? concat(i ? "," : "", values[i]) : concat(i ? ", \"" : "{\"", names[i], "\": ", values[i]);
  return put(text + (isCsv ? ",\n" : "}\n"));
}

/// In a row of its own, so that lines of steps are the same with and without it.
Status TrainLog::writeEval(uint64_t step, uint64_t epoch, double eval) {
  if (!file)
    return program::kGood;
  std::string number = format(eval, isCsv ? "" : "null");
  return put(isCsv ? concat(step, ",", epoch, ",,,,,,,", number, "\n")
                   : concat("{\"step\": ", step, ", \"epoch\": ", epoch, ", \"eval\": ", number, "}\n"));
}
