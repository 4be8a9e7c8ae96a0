//===- Secret.cpp - what the ranks of one run know ------------------------===//
//
// Drawing from the kernel, digits, and BLAKE2b of libb2 with the secret as its key, which is what it is made for as a MAC.
//
//===----------------------------------------------------------------------===//
#include "Secret.h"

#include <blake2.h>
#include <cerrno>
#include <cstring>
#include <sys/random.h>

using namespace cleave::runtime;

std::optional<Secret> cleave::runtime::drawSecret() {
  Secret secret;
  ssize_t got;
  do
    got = getrandom(secret.data(), secret.size(), 0);
  while (got < 0 && errno == EINTR);
  return got == ssize_t(secret.size()) ? std::optional(secret) : std::nullopt;
}

std::string cleave::runtime::format(const Secret &secret) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : secret)
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  return text;
}

std::optional<Secret> cleave::runtime::parseSecret(std::string_view digits) {
  Secret secret = {};
  if (digits.size() != 2 * secret.size())
    return std::nullopt;
  for (size_t i = 0; i < digits.size(); ++i) {
    char digit = digits[i];
    int value = digit >= '0' && digit <= '9'   ? digit - '0'
                : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                               : -1;
    if (value < 0)
      return std::nullopt;
    secret[i / 2] = static_cast<unsigned char>(secret[i / 2] * 16 + value);
  }
  return secret;
}

Secret cleave::runtime::derive(const Secret &secret, std::string_view name) {
  Secret derived;
  blake2b(derived.data(), name.data(), secret.data(), derived.size(), name.size(), secret.size());
  return derived;
}

Proof cleave::runtime::prove(const Secret &secret, std::string_view text) {
  Proof proof;
  blake2b(proof.data(), text.data(), secret.data(), proof.size(), text.size(), secret.size());
  return proof;
}

/// The compiler may not see that one difference decides.
bool cleave::runtime::isEqual(const Proof &one, const Proof &other) {
  volatile unsigned char differs = 0;
  for (size_t i = 0; i < one.size(); ++i)
    differs = differs | (one[i] ^ other[i]);
  return differs == 0;
}
