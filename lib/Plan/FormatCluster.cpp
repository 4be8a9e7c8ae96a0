//===- FormatCluster.cpp - a machine as a cluster file --------------------===//
//
// What is reached is written, without an efficiency; numbers have four digits, which is more than anybody measures.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/ClusterFile.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace cleave::spmd;
using namespace llvm;

/// A file has no exponents.
static std::string formatNumber(double number) {
  int digits = number > 0 ? std::max(0, 3 - static_cast<int>(std::floor(std::log10(number)))) : 0;
  std::string text;
  raw_string_ostream(text) << format("%.*f", digits, number);
  return text;
}

/// The keys of a link that anybody has; the brace before them is the caller's.
static std::string formatLink(const ClusterLink &link) {
  return "latency: " + formatNumber(link.latencyNs) + "ns, bandwidth: " + formatNumber(link.bytesPerNs) + "GB/s}";
}

/// Rates as they are reached, each with the unit that comes closest to what people write.
static std::string formatDevice(const ClusterDevice &device) {
  std::string text = "device:\n  flops: {", separator;
  for (const auto &[type, rate] : device.flopsPerNs) {
    text += separator + type + ": " + formatNumber(rate) + "G";
    separator = ", ";
  }
  text += "}\n  bandwidth: " + formatNumber(device.memoryBytesPerNs) + "GB/s\n";
  if (device.memoryBytes > 0)
    text += formatv("  memory: {0}B\n", device.memoryBytes);
  if (device.cacheBytes > 0)
    text +=
        formatv("  cache: {0}B\n  cache_bandwidth: {1}GB/s\n", device.cacheBytes, formatNumber(device.cacheBytesPerNs));
  if (device.hostBytesPerNs != ClusterDevice::kHostBytesPerNs)
    text += "  host: " + formatNumber(device.hostBytesPerNs) + "GB/s\n";
  return text + "  launch: " + formatNumber(device.launchNs) + "ns\n";
}

/// A line for each device: who wrote several into one did so by hand.
static std::string formatUnlike(const Cluster &cluster) {
  std::string text = cluster.unlike.empty() ? "" : "unlike:\n";
  for (const auto &[number, unlike] : cluster.unlike) {
    text += formatv("  - {{devices: [{0}]", number);
    if (unlike.speed != 1)
      text += ", speed: " + formatNumber(unlike.speed);
    if (unlike.memoryBytes > 0)
      text += formatv(", memory: {0}B", unlike.memoryBytes);
    text += "}\n";
  }
  return text;
}

std::string cleave::spmd::formatCluster(const Cluster &cluster) {
  std::string text = "name: " + cluster.name + "\n" + formatDevice(cluster.device) + formatUnlike(cluster) +
                     "collective: " + formatNumber(cluster.beginNs) + "ns\n";
  if (cluster.levels.size() == 1 && cluster.levels.front().devices == 0) {
    text += "links: {" + formatLink(cluster.levels.front().link) + "\n";
  } else {
    text += "links:\n";
    for (const ClusterLevel &level : cluster.levels)
      text += formatv("  - {{name: {0}, devices: {1}, {2}\n", level.name, level.devices, formatLink(level.link));
  }
  if (!cluster.axes.empty())
    text += "axes:\n";
  for (const auto &[axis, link] : cluster.axes)
    text += "  " + axis + ": {" + formatLink(link) + "\n";
  return text;
}
