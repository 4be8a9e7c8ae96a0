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

#include <cassert>
#include <cstdint>
#include <initializer_list>
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
  const Error &getError() const {
    assert(!value && "there is no error");
    return error;
  }

private:
  std::optional<T> value;
  Error error;
};

/// A text or a number of a message. Messages are put together out of line, from parts of two words each: there are many of
/// them, and the runtime is small.
class Part {
public:
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Part(T number)
      : kind(std::is_floating_point_v<T> ? Kind::Real
             : std::is_signed_v<T>       ? Kind::Signed
                                         : Kind::Unsigned) {
    if constexpr (std::is_floating_point_v<T>)
      real = number;
    else
      bits = static_cast<uint64_t>(number);
  }
  Part(std::string_view view) : kind(Kind::Text), length(uint32_t(view.size())), text(view.data()) {}
  Part(const std::string &view) : Part(std::string_view(view)) {}
  /// Ends with a zero.
  Part(const char *literal) : kind(Kind::Literal), text(literal) {}

  void appendTo(std::string &message) const;

private:
  enum class Kind : uint8_t { Text, Literal, Signed, Unsigned, Real } kind;
  uint32_t length = 0; ///< of a text
  union {
    const char *text;
    uint64_t bits;
    double real;
  };
};

/// All parts, one behind the other.
std::string concat(std::initializer_list<Part> parts);
template <typename... Parts> std::string concat(const Parts &...parts) { return concat({Part(parts)...}); }

/// An error whose text is all of its parts. Text from a file goes through `quote`.
Error makeError(std::initializer_list<Part> parts);
template <typename... Parts> Error makeError(const Parts &...parts) { return makeError({Part(parts)...}); }

/// Text from an untrusted file as it may stand in a message: in quotes, control characters and all beyond ASCII as
/// \xNN, at most 100 bytes of it.
std::string quote(std::string_view text);

/// The same where it would disturb a terminal or a line, and otherwise the text as it is.
std::string printable(std::string_view text);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_ERROR_H
