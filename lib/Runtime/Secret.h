//===- Secret.h - what the ranks of one run know ----------------*- C++ -*-===//
//
// A secret of 128 bits tells the processes of a run from everybody else who finds a port of theirs. It is never sent between
// them: who knows it proves that, by keyed BLAKE2b (libb2) over what both ends of a connection have just drawn.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_SECRET_H
#define CLEAVE_LIB_RUNTIME_SECRET_H

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace cleave::runtime {

using Secret = std::array<unsigned char, 16>;
/// Drawn anew for each connection by each of its ends, so that what was said once proves nothing again.
using Nonce = std::array<unsigned char, 16>;
using Proof = std::array<unsigned char, 32>;

/// From the system's random source; nothing where it has none.
std::optional<Secret> drawSecret();

/// 32 hexadecimal digits.
std::string format(const Secret &secret);
std::optional<Secret> parseSecret(std::string_view digits);
/// One that only who knows `secret` can make, and another for every `name`.
Secret derive(const Secret &secret, std::string_view name);

/// Keyed BLAKE2b of `text`.
Proof prove(const Secret &secret, std::string_view text);
/// Takes equally long whatever differs.
bool isEqual(const Proof &one, const Proof &other);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_SECRET_H
