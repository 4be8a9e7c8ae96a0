//===- Certificate.cpp - a proof as a file --------------------------------===//
//
// Lists of numbers are packed: each as LEB128, 7 bits to a byte, signed ones zigzag, all of them in base 64. Two numbers that follow each
// other in a message are near each other, so what is packed is their differences.
//
//   message  1000 1003 997    ──▶    3, 1000 +3 -6    ──▶    03 d0 0f 06 0b    ──▶    "A9APBgs="
//
// Files come from strangers: what is read may be anything, and is only looked at for whether it can be read. Whether it proves something is
// for CheckCertificate.cpp.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/Certificate.h"
#include "cleave/Support/JsonText.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/raw_ostream.h"

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

/// Of the file: before 2 there were no stages.
static constexpr int64_t kVersion = 2;

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

namespace {
class Packer {
public:
  void add(uint64_t number) { encodeULEB128(number, os); }
  void add(ArrayRef<int64_t> list) {
    add(list.size());
    uint64_t before = 0;
    for (int64_t number : list) {
      auto difference = static_cast<int64_t>(static_cast<uint64_t>(number) - before);
      add(static_cast<uint64_t>(difference) << 1 ^ static_cast<uint64_t>(difference >> 63));
      before = static_cast<uint64_t>(number);
    }
  }
  std::string finish() { return encodeBase64(bytes); }

private:
  SmallString<256> bytes;
  raw_svector_ostream os{bytes};
};

/// Numbers are 0 behind the end or an error, so that who reads asks once, in the end. No list is longer than the bytes that there are.
class Unpacker {
public:
  explicit Unpacker(StringRef text) { isBad = errorToBool(decodeBase64(text, bytes)); }

  uint64_t next() {
    const char *error = nullptr;
    unsigned length = 0;
    const auto *begin = reinterpret_cast<const uint8_t *>(bytes.data()) + place;
    uint64_t number =
        isBad ? 0
              : decodeULEB128(begin, &length, reinterpret_cast<const uint8_t *>(bytes.data()) + bytes.size(), &error);
    isBad |= error != nullptr;
    place += length;
    return isBad ? 0 : number;
  }
  std::vector<int64_t> nextList() {
    uint64_t count = next(), before = 0;
    std::vector<int64_t> list;
    // A number takes a byte at least.
    isBad |= count > bytes.size();
    for (uint64_t index = 0; index < count && !isBad; ++index) {
      uint64_t word = next();
      before += word >> 1 ^ (~(word & 1) + 1);
      list.push_back(static_cast<int64_t>(before));
    }
    return list;
  }
  bool isAtEnd() const { return !isBad && place == bytes.size(); }

private:
  std::vector<char> bytes;
  size_t place = 0;
  bool isBad = false;
};
} // namespace

/// Numbers that follow each other differ by little.
static std::string pack(const Messages &messages) {
  Packer packer;
  packer.add(messages.size());
  for (const EdgeMessage &message : messages) {
    packer.add(message.toRows);
    packer.add(message.toColumns);
  }
  return packer.finish();
}

/// Nothing where the text ends early or goes on: a file that was cut off is no proof.
static std::optional<Messages> unpackMessages(StringRef text) {
  Unpacker unpacker(text);
  Messages messages;
  for (uint64_t count = unpacker.next(); messages.size() < count;) {
    EdgeMessage &message = messages.emplace_back();
    message.toRows = unpacker.nextList();
    message.toColumns = unpacker.nextList();
    if (message.toRows.empty()) // No edge is without rows: the text has ended.
      return std::nullopt;
  }
  return unpacker.isAtEnd() ? std::optional(std::move(messages)) : std::nullopt;
}

static std::optional<std::vector<uint16_t>> unpackOptions(StringRef text) {
  Unpacker unpacker(text);
  std::vector<uint16_t> options;
  for (int64_t number : unpacker.nextList()) {
    if (number < 0 || number > UINT16_MAX)
      return std::nullopt;
    options.push_back(static_cast<uint16_t>(number));
  }
  return unpacker.isAtEnd() ? std::optional(std::move(options)) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static json::Value toJson(const CountRange &range) { return json::Array{range.least, range.most}; }

static json::Value toJson(const CertifiedCell &cell) {
  return json::Object{{"stages", cell.of.stages.stages},
                      {"microbatches", cell.of.stages.microbatches},
                      {"mesh", json::Array(cell.of.mesh)},
                      {"price", cell.price.numerator},
                      {"messages", cell.messages},
                      {"bound", cell.bound},
                      {"tables", utohexstr(cell.tables, /*LowerCase=*/true, /*Width=*/16)}};
}

/// Keys are fixed in docs/finding-plans.md.
std::string cleave::spmd::formatCertificate(const Certificate &certificate) {
  json::Object dims;
  for (const auto &[name, size] : certificate.dims)
    dims[name] = size;
  Packer options;
  options.add(std::vector<int64_t>(certificate.options.begin(), certificate.options.end()));
  json::Array cells, messages;
  for (const CertifiedCell &cell : certificate.cells)
    cells.push_back(toJson(cell));
  for (const Messages &list : certificate.messages)
    messages.push_back(pack(list));
  json::Object plan{{"text", certificate.plan},          {"cell", certificate.planCell},
                    {"options", options.finish()},       {"units", certificate.units},
                    {"stored", certificate.storedBytes}, {"predicted_ns", certificate.predictedNs}};
  json::Object all{{"version", kVersion},
                   {"kind", "certificate"},
                   {"model", certificate.model},
                   {"cluster", certificate.cluster},
                   {"dims", std::move(dims)},
                   {"devices", certificate.devices},
                   {"stages", toJson(certificate.stages)},
                   {"microbatches", toJson(certificate.microbatches)},
                   {"of_many", certificate.isOfMany},
                   {"memory_limit", certificate.memoryBytes},
                   {"plan", std::move(plan)},
                   {"cells", std::move(cells)},
                   {"messages", std::move(messages)}};
  if (certificate.isStep)
    all["step"] = true;
  return formatv("{0:2}\n", json::Value(std::move(all)));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static bool fromJson(const json::Value &value, CertifiedCell &cell, json::Path path) {
  json::ObjectMapper map(value, path);
  std::string tables;
  StageCell &stages = cell.of.stages;
  return map && map.map("stages", stages.stages) && map.map("microbatches", stages.microbatches) &&
         map.map("mesh", cell.of.mesh) && map.map("price", cell.price.numerator) &&
         map.map("messages", cell.messages) && map.map("bound", cell.bound) && map.map("tables", tables) &&
         (!StringRef(tables).getAsInteger(16, cell.tables) ||
          (path.field("tables").report("expected a digest"), false));
}

namespace cleave::spmd {
/// Numbers are counted from 1.
static bool fromJson(const json::Value &value, CountRange &range, json::Path path) {
  std::vector<int64_t> ends;
  if (!json::fromJSON(value, ends, path))
    return false;
  if (ends.size() != 2 || ends[0] < 1 || ends[1] < ends[0]) {
    path.report("expected the least and the most of a count");
    return false;
  }
  range = {ends[0], ends[1]};
  return true;
}

static bool fromJson(const json::Value &value, std::vector<CertifiedCell> &cells, json::Path path) {
  const json::Array *list = value.getAsArray();
  if (!list) {
    path.report("expected array");
    return false;
  }
  for (auto [index, one] : enumerate(*list))
    if (!::fromJson(one, cells.emplace_back(), path.index(index)))
      return false;
  return true;
}

static bool fromJson(const json::Value &value, Certificate &certificate, json::Path path) {
  json::ObjectMapper map(value, path);
  int64_t version = 0;
  std::string kind, options;
  std::vector<std::string> messages;
  if (!map || !map.map("version", version) || !map.map("kind", kind))
    return false;
  if (kind != "certificate" || version != kVersion) {
    path.report("expected a certificate of version 2");
    return false;
  }
  const json::Object &object = *value.getAsObject();
  const json::Value *plan = object.get("plan"), *cells = object.get("cells");
  const json::Value *stages = object.get("stages"), *microbatches = object.get("microbatches");
  if (!map.map("model", certificate.model) || !map.map("cluster", certificate.cluster) ||
      !map.map("dims", certificate.dims) || !map.map("devices", certificate.devices) ||
      !map.map("memory_limit", certificate.memoryBytes) || !map.map("of_many", certificate.isOfMany) ||
      !map.mapOptional("step", certificate.isStep) || !map.map("messages", messages))
    return false;
  for (auto [key, field] :
       {std::pair(plan, "plan"), {cells, "cells"}, {stages, "stages"}, {microbatches, "microbatches"}})
    if (!key) {
      path.field(field).report("missing value");
      return false;
    }
  if (!fromJson(*stages, certificate.stages, path.field("stages")) ||
      !fromJson(*microbatches, certificate.microbatches, path.field("microbatches")))
    return false;
  json::ObjectMapper ofPlan(*plan, path.field("plan"));
  if (!ofPlan || !ofPlan.map("text", certificate.plan) || !ofPlan.map("cell", certificate.planCell) ||
      !ofPlan.map("options", options) || !ofPlan.map("units", certificate.units) ||
      !ofPlan.map("stored", certificate.storedBytes) || !ofPlan.map("predicted_ns", certificate.predictedNs) ||
      !fromJson(*cells, certificate.cells, path.field("cells")))
    return false;
  std::optional<std::vector<uint16_t>> unpacked = unpackOptions(options);
  if (!unpacked) {
    path.field("plan").field("options").report("expected packed numbers");
    return false;
  }
  certificate.options = std::move(*unpacked);
  for (auto [index, text] : enumerate(messages)) {
    std::optional<Messages> list = unpackMessages(text);
    if (!list) {
      path.field("messages").index(index).report("expected packed messages");
      return false;
    }
    certificate.messages.push_back(std::move(*list));
  }
  return true;
}
} // namespace cleave::spmd

Expected<Certificate> cleave::spmd::parseCertificate(StringRef text) {
  Expected<json::Value> value = cleave::parseJson(text);
  if (!value)
    return value.takeError();
  Certificate certificate;
  json::Path::Root root("certificate");
  if (!fromJson(*value, certificate, root))
    return root.getError();
  return std::move(certificate);
}
