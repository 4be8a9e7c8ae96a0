//===- Error.h - errors of the program file and the runtime -----*- C++ -*-===//
//
// What reads programs and what runs them link neither MLIR nor LLVM and throw nothing: an error is a value with a text,
// written as docs/style.md asks, one line without the name of the file.
//
//   Status check(int64_t size) {
//     if (size < 0)
//       return makeError("size is ", size, ", expected 0 or more");
//     return kGood;
//   }
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_ERROR_H
#define CLEAVE_PROGRAM_ERROR_H

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace cleave::program {

struct Error {
  std::string message;
};

/// An error, or nothing where all went well: `if (Status error = check(size)) return error;`.
using Status = std::optional<Error>;
inline constexpr std::nullopt_t kGood = std::nullopt;

/// A value, or the error that came instead.
template <typename T> class Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Error error) : error(std::move(error)) {}

  explicit operator bool() const { return value.has_value(); }
  /// Precondition of both: there is a value.
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }
  /// Precondition: there is none.
  const Error &getError() const { return error; }

private:
  std::optional<T> value;
  Error error;
};

/// Texts and numbers, one behind the other.
template <typename... Parts> std::string concat(const Parts &...parts) {
  std::string text;
  auto append = [&](const auto &part) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>)
      text += std::to_string(part);
    else
      text += part;
  };
  (append(parts), ...);
  return text;
}

/// An error whose text is all of its parts. Text from a file goes through `quote`.
template <typename... Parts> Error makeError(const Parts &...parts) { return Error{concat(parts...)}; }

/// Text from an untrusted file as it may stand in a message: in quotes, control characters and all beyond ASCII as
/// \xNN, at most 100 bytes of it.
std::string quote(std::string_view text);

/// The same where it would disturb a terminal or a line, and otherwise the text as it is.
std::string printable(std::string_view text);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_ERROR_H
